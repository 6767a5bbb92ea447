"""Names for what functions take and give."""
import os
from typing import Any, Dict, Union

Event = Dict[str, Any]  # as docs/schema/inferscope-events-1.schema.json has it; times in microseconds
Document = Dict[str, Any]
Path = Union[str, "os.PathLike[str]"]
