# Two images from one file:
#   docker build --target audit -t march:audit .           the light core: `march audit` and `march serve`
#   docker build --target train-cpu -t march:train-cpu .   all of it, for training without a GPU
# PyTorch's CPU wheels are taken from where --build-arg PIP_EXTRA_INDEX_URL says; without it PyPI's CUDA build is installed.
FROM python:3.11-slim-bookworm AS base
ENV PYTHONUNBUFFERED=1 PIP_NO_CACHE_DIR=1 UV_NO_CACHE=1 UV_INDEX_STRATEGY=unsafe-best-match PATH=/opt/march/bin:$PATH
RUN python -m venv /opt/march && /opt/march/bin/pip install --quiet uv==0.13.8 && useradd --create-home march
WORKDIR /src
COPY pyproject.toml README.md LICENSE ./
COPY requirements requirements
COPY reward reward
COPY pipeline pipeline
COPY orchestration orchestration

FROM base AS audit
RUN uv pip install --python /opt/march/bin/python -c requirements/cpu.txt .
USER march
WORKDIR /home/march
ENTRYPOINT ["march"]
CMD ["--help"]

FROM base AS train-cpu
ARG PIP_EXTRA_INDEX_URL=""
# DeepSpeed compiles a C++ extension on first use.
RUN apt-get update && apt-get install -y --no-install-recommends g++ && rm -rf /var/lib/apt/lists/*
RUN UV_EXTRA_INDEX_URL=$PIP_EXTRA_INDEX_URL uv pip install --python /opt/march/bin/python -c requirements/cpu.txt '.[train-cpu]'
USER march
WORKDIR /home/march
ENTRYPOINT ["march"]
CMD ["demo"]
