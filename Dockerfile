# An image of gtransformer-serve, for a CPU or, with --build-arg DEVICE=cuda, for an NVIDIA GPU. docs/serve.md shows how.
ARG PYTHON=3.12
FROM python:${PYTHON}-slim

# Wheels of torch for CUDA bring its libraries; those for a CPU have an index of their own.
ARG DEVICE=cpu
WORKDIR /app
COPY constraints.txt setup.cfg pyproject.toml README.md LICENSE ./
COPY modeling_gtransformer modeling_gtransformer
RUN case "$DEVICE" in \
        cpu) export PIP_EXTRA_INDEX_URL=https://download.pytorch.org/whl/cpu ;; \
        cuda) ;; \
        *) echo "DEVICE is cpu or cuda, not $DEVICE" >&2; exit 1 ;; \
    esac \
    && pip install --no-cache-dir --constraint constraints.txt '.[files,serve,page,detect]'

# Models from the Hub are kept in a volume, /cache; large uploads pass through /tmp.
ENV HF_HOME=/cache
RUN useradd --create-home server && mkdir /cache && chown server /cache
USER server
VOLUME /cache
EXPOSE 5000
HEALTHCHECK --start-period=5m \
    CMD ["python", "-c", "import urllib.request; urllib.request.urlopen('http://127.0.0.1:5000/health')"]
ENTRYPOINT ["gtransformer-serve", "--host", "0.0.0.0"]
