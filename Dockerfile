# Four images from one file; `make image` builds them, infra/images/README.md describes them.
#   audit         `march audit` and `march serve`, without a model
#   orchestrator  `march retrain --if-due`, `march retrain --cluster`, `march model promote`, and MLflow's server
#   train-cpu     all of it, for training without a GPU
#   train-gpu     the same with CUDA, vLLM and flash-attn
# A stage build-X makes the environment /opt/march with compilers and uv; the image X gets the environment alone.

# Tag and digest: the tag is for readers, the digest decides. `make pin-images` asks the registry for new ones.
ARG PYTHON_IMAGE=docker.io/library/python:3.11-slim-bookworm@sha256:0bee7276f83efd4a1ee05bbbf4281d95ed28e079220a9457f25a93e3f1e3c31b
ARG CUDA_IMAGE=docker.io/nvidia/cuda:13.0.2-base-ubuntu24.04@sha256:2ab6381d970b211fb93853796dc6707eb8a72575a375c422b17cf4d8b2641701
ARG CUDA_BUILD_IMAGE=docker.io/nvidia/cuda:13.0.2-devel-ubuntu24.04@sha256:5dc1bca23d05bd37b011be68ec470c03b403a5da07ec3a86e41af9470e9d0cc6

FROM ${PYTHON_IMAGE} AS python

# ---- environments ----

FROM python AS build
# The system's certificates, so that a site's own authority is trusted where the base image or a mount has it.
ENV PIP_CERT=/etc/ssl/certs/ca-certificates.crt UV_SYSTEM_CERTS=true UV_LINK_MODE=copy \
    UV_INDEX_STRATEGY=unsafe-best-match UV_COMPILE_BYTECODE=1 VIRTUAL_ENV=/opt/march PATH=/opt/tools/bin:$PATH
WORKDIR /src
COPY requirements requirements
RUN --mount=type=cache,target=/root/.cache/pip \
    python -m venv /opt/tools && \
    /opt/tools/bin/pip install --quiet -r requirements/image.txt -c requirements/cpu.txt && \
    uv venv --python "$(command -v python)" /opt/march
# Settings of uv for another index or folder of wheels; they reach RUN as environment.
ARG UV_DEFAULT_INDEX
ARG UV_FIND_LINKS
COPY pyproject.toml README.md LICENSE ./
COPY infra/images/inventory.sh infra/images/inventory.sh

FROM build AS build-audit
# What is installed first changes rarely; the sources change with every commit.
RUN --mount=type=cache,target=/root/.cache/uv \
    uv pip install -r pyproject.toml --extra otel -c requirements/cpu.txt
COPY reward reward
COPY pipeline pipeline
COPY orchestration orchestration
RUN --mount=type=cache,target=/root/.cache/uv \
    uv pip install --no-deps . && infra/images/inventory.sh /opt/march/bin/python /opt/inventory

FROM build AS build-orchestrator
RUN --mount=type=cache,target=/root/.cache/uv \
    uv pip install -r pyproject.toml --extra orchestrator -c requirements/cpu.txt
COPY reward reward
COPY pipeline pipeline
COPY orchestration orchestration
RUN --mount=type=cache,target=/root/.cache/uv \
    uv pip install --no-deps . && infra/images/inventory.sh /opt/march/bin/python /opt/inventory

FROM build AS build-train-cpu
# PyPI has only PyTorch's CUDA build.
ARG UV_EXTRA_INDEX_URL=https://download.pytorch.org/whl/cpu
RUN --mount=type=cache,target=/root/.cache/uv \
    uv pip install -r pyproject.toml --extra train-cpu -c requirements/cpu.txt
COPY reward reward
COPY pipeline pipeline
COPY orchestration orchestration
RUN --mount=type=cache,target=/root/.cache/uv \
    uv pip install --no-deps . && infra/images/inventory.sh /opt/march/bin/python /opt/inventory

FROM ${CUDA_BUILD_IMAGE} AS build-cuda
# The same interpreter as in the other images: Ray's processes must agree, and the pins are for it.
COPY --from=python /usr/local/ /usr/local/
# hadolint ignore=DL3008
RUN apt-get update && \
    apt-get install -y --no-install-recommends ca-certificates g++ libffi8 libsqlite3-0 libssl3t64 && \
    rm -rf /var/lib/apt/lists/*
COPY --from=build /opt/tools /opt/tools
COPY --from=build /opt/march /opt/march
ENV UV_SYSTEM_CERTS=true UV_LINK_MODE=copy UV_INDEX_STRATEGY=unsafe-best-match UV_COMPILE_BYTECODE=1 \
    VIRTUAL_ENV=/opt/march PATH=/opt/tools/bin:$PATH
ARG UV_DEFAULT_INDEX
ARG UV_FIND_LINKS
WORKDIR /src
COPY requirements/gpu.txt requirements/gpu.txt
# Ampere, Hopper and Blackwell of data centres.
ARG TORCH_CUDA_ARCH_LIST="8.0;9.0;10.0"

FROM build-cuda AS build-flash-attn
# PyPI has only its sources: hours on few cores, about 4 GiB of memory a job. FLASH_ATTN_WHEEL names a wheel instead.
ARG FLASH_ATTN_WHEEL=""
ARG FLASH_ATTN_CUDA_ARCHS="80;90;100"
ARG MAX_JOBS=4
SHELL ["/bin/bash", "-o", "pipefail", "-c"]
RUN --mount=type=cache,target=/root/.cache/uv --mount=type=cache,target=/root/.cache/pip \
    if [ -n "$FLASH_ATTN_WHEEL" ]; then \
        /opt/tools/bin/pip download --no-deps --dest /wheels "$FLASH_ATTN_WHEEL"; \
    else \
        uv pip install -c requirements/gpu.txt torch einops ninja packaging pip psutil setuptools wheel && \
        FLASH_ATTENTION_FORCE_BUILD=TRUE /opt/march/bin/python -m pip wheel --no-build-isolation --no-deps \
            --wheel-dir /wheels flash-attn==2.8.3; \
    fi

FROM build-cuda AS build-train-gpu
COPY pyproject.toml README.md LICENSE ./
RUN --mount=type=cache,target=/root/.cache/uv \
    uv pip install -r pyproject.toml --extra train-gpu -c requirements/gpu.txt
# DeepSpeed compiles its optimizer on first use; compiled here, the image needs no place to write it. uv would take
# the wheel that it built above, which has none, from its cache.
RUN DS_ACCELERATOR=cuda DS_BUILD_FUSED_ADAM=1 uv pip install --no-cache --no-build-isolation --no-deps --reinstall \
    --no-binary deepspeed -c requirements/gpu.txt deepspeed
RUN --mount=type=bind,from=build-flash-attn,source=/wheels,target=/wheels \
    --mount=type=cache,target=/root/.cache/uv \
    uv pip install --no-deps /wheels/*.whl && uv pip install -c requirements/gpu.txt einops
COPY infra/images/inventory.sh infra/images/inventory.sh
COPY reward reward
COPY pipeline pipeline
COPY orchestration orchestration
RUN --mount=type=cache,target=/root/.cache/uv \
    uv pip install --no-deps . && infra/images/inventory.sh /opt/march/bin/python /opt/inventory

# ---- images ----

FROM python AS runtime
# The root file system may be read-only: what is written goes to the volume /var/lib/march and to /tmp.
ENV PATH=/opt/march/bin:$PATH HOME=/var/lib/march PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1
# A login shell, in which KubeRay starts Ray, sets PATH anew.
# hadolint ignore=SC2016
RUN groupadd --gid 10001 march && \
    useradd --uid 10001 --gid 10001 --home-dir /var/lib/march --no-create-home --shell /usr/sbin/nologin march && \
    install -d -o march -g march /var/lib/march && \
    install -d /usr/local/share/march /usr/share/doc/march && \
    uname -m >/usr/local/share/march/architecture && \
    echo 'PATH=/opt/march/bin:$PATH' >/etc/profile.d/march.sh && \
    dpkg-query --show >/usr/share/doc/march/debian-packages.txt
COPY --chmod=0755 infra/images/entrypoint.sh /usr/local/bin/march-entrypoint
COPY LICENSE /usr/share/doc/march/LICENSE
WORKDIR /var/lib/march
VOLUME /var/lib/march
USER 10001:10001
ENTRYPOINT ["march-entrypoint"]
CMD ["--help"]

FROM runtime AS audit
COPY --from=build-audit /opt/inventory /usr/share/doc/march
COPY --from=build-audit /opt/march /opt/march
# Of `march serve --host 0.0.0.0 --port 8000`.
EXPOSE 8000
ENV MARCH_HEALTH_URL=http://127.0.0.1:8000/healthz
HEALTHCHECK --start-period=20s --interval=15s --timeout=5s \
    CMD ["python", "-c", "import os, urllib.request as r; r.urlopen(os.environ['MARCH_HEALTH_URL'], timeout=4)"]
ARG MARCH_VERSION=unknown
ARG MARCH_COMMIT=unknown
LABEL org.opencontainers.image.title="march-audit" \
    org.opencontainers.image.description="Audits answers against their documents; the reward server" \
    org.opencontainers.image.licenses="Apache-2.0" \
    org.opencontainers.image.version="$MARCH_VERSION" \
    org.opencontainers.image.revision="$MARCH_COMMIT"

FROM runtime AS orchestrator
COPY --from=build-orchestrator /opt/inventory /usr/share/doc/march
COPY --from=build-orchestrator /opt/march /opt/march
# Of `march schedule`, which answers on the container's loopback.
ENV MARCH_HEALTH_URL=http://127.0.0.1:5002/healthz
HEALTHCHECK --start-period=30s --interval=15s --timeout=5s \
    CMD ["python", "-c", "import os, urllib.request as r; r.urlopen(os.environ['MARCH_HEALTH_URL'], timeout=4)"]
ARG MARCH_VERSION=unknown
ARG MARCH_COMMIT=unknown
LABEL org.opencontainers.image.title="march-orchestrator" \
    org.opencontainers.image.description="Schedules, retrains on a cluster, registers and promotes models" \
    org.opencontainers.image.licenses="Apache-2.0" \
    org.opencontainers.image.version="$MARCH_VERSION" \
    org.opencontainers.image.revision="$MARCH_COMMIT"

FROM runtime AS train-cpu
USER 0
# OpenMP for PyTorch and vLLM; vLLM's CPU build asks libnuma; wget for the probes of KubeRay before 1.6.
# hadolint ignore=DL3008
RUN apt-get update && apt-get install -y --no-install-recommends libgomp1 libnuma1 wget && rm -rf /var/lib/apt/lists/* && \
    dpkg-query --show >/usr/share/doc/march/debian-packages.txt
USER 10001:10001
COPY --from=build-train-cpu /opt/inventory /usr/share/doc/march
COPY --from=build-train-cpu /opt/march /opt/march
ARG MARCH_VERSION=unknown
ARG MARCH_COMMIT=unknown
LABEL org.opencontainers.image.title="march-train-cpu" \
    org.opencontainers.image.description="Trains a policy with MARCH without a GPU" \
    org.opencontainers.image.licenses="Apache-2.0" \
    org.opencontainers.image.version="$MARCH_VERSION" \
    org.opencontainers.image.revision="$MARCH_COMMIT"

FROM ${CUDA_IMAGE} AS train-gpu
COPY --from=python /usr/local/ /usr/local/
# What the interpreter links to; a compiler, since Triton and vLLM compile kernels when they run.
# hadolint ignore=DL3008
RUN apt-get update && \
    apt-get install -y --no-install-recommends ca-certificates g++ libffi8 libgomp1 libreadline8t64 libsqlite3-0 \
        libssl3t64 netbase tzdata wget && \
    rm -rf /var/lib/apt/lists/*
ENV PATH=/opt/march/bin:$PATH HOME=/var/lib/march LANG=C.UTF-8 PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1
COPY --from=runtime /usr/local/bin/march-entrypoint /usr/local/bin/march-entrypoint
COPY --from=runtime /usr/local/share/march /usr/local/share/march
COPY --from=runtime /etc/profile.d/march.sh /etc/profile.d/march.sh
RUN groupadd --gid 10001 march && \
    useradd --uid 10001 --gid 10001 --home-dir /var/lib/march --no-create-home --shell /usr/sbin/nologin march && \
    install -d -o march -g march /var/lib/march && \
    install -d /usr/share/doc/march && \
    dpkg-query --show >/usr/share/doc/march/debian-packages.txt
COPY LICENSE /usr/share/doc/march/LICENSE
COPY --from=build-train-gpu /opt/inventory /usr/share/doc/march
COPY --from=build-train-gpu /opt/march /opt/march
WORKDIR /var/lib/march
VOLUME /var/lib/march
USER 10001:10001
ENTRYPOINT ["march-entrypoint"]
CMD ["--help"]
ARG MARCH_VERSION=unknown
ARG MARCH_COMMIT=unknown
LABEL org.opencontainers.image.title="march-train-gpu" \
    org.opencontainers.image.description="Trains a policy with MARCH on NVIDIA GPUs" \
    org.opencontainers.image.licenses="Apache-2.0" \
    org.opencontainers.image.version="$MARCH_VERSION" \
    org.opencontainers.image.revision="$MARCH_COMMIT"
