"""One case per function: `python cases.py NAME` prints nothing and ends with 0 when it holds. Programs know the truth; the
session's events must say the same."""
import sys

import allocations
import backends
import budget
import calls
import greenlets
import natives
import stacks
import troubles

CASES = {name[5:]: case for module in (calls, stacks, troubles, budget, backends, greenlets, allocations, natives)
         for name, case in vars(module).items() if name.startswith('case_')}

if __name__ == '__main__':
    name = sys.argv[1]
    if name == '--list':
        print('\n'.join(name for name, case in CASES.items() if sys.version_info[1] in getattr(case, 'minors', [sys.version_info[1]])))
    else:
        CASES[name]()
