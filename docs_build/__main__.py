"""Write the generated pages into docs."""

from . import write

write()
