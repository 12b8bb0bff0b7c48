"""`python -m reward CONFIG.json`: the reward server from a file, as a trainer starts it beside itself."""

import sys
from pathlib import Path

from reward.serving.config import ServerConfig
from reward.serving.server import serve

if __name__ == "__main__":
    serve(ServerConfig.model_validate_json(Path(sys.argv[1]).read_text()))
