"""What backends of other packages import: it stands in `core/`."""

from ..core.contract import Contract as Contract
