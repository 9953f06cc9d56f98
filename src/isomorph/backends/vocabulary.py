"""What backends of other packages import: it stands in `core/`."""

from ..core.vocabulary import CONSTANTS as CONSTANTS
from ..core.vocabulary import CREATION as CREATION
from ..core.vocabulary import DATA_TYPES as DATA_TYPES
from ..core.vocabulary import DTYPES as DTYPES
from ..core.vocabulary import ELEMENTWISE as ELEMENTWISE
from ..core.vocabulary import FFT as FFT
from ..core.vocabulary import INDEXING as INDEXING
from ..core.vocabulary import INSPECTION as INSPECTION
from ..core.vocabulary import LAYERS as LAYERS
from ..core.vocabulary import LINALG as LINALG
from ..core.vocabulary import MANIPULATION as MANIPULATION
from ..core.vocabulary import MATRICES as MATRICES
from ..core.vocabulary import SEARCHING as SEARCHING
from ..core.vocabulary import SETS as SETS
from ..core.vocabulary import STATISTICS as STATISTICS
from ..core.vocabulary import VOCABULARY as VOCABULARY
from ..core.vocabulary import Names as Names
