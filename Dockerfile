FROM rust:1.95.0-bookworm AS build
WORKDIR /src
# The image's own toolchain: rust-toolchain.toml would have components fetched that only developers need.
ENV RUSTUP_TOOLCHAIN=1.95.0 SQLX_OFFLINE=true
COPY . .
RUN --mount=type=cache,target=/usr/local/cargo/registry \
    --mount=type=cache,target=/src/target \
    cargo build --release --locked -p fanfare-server --bin fanfare && cp target/release/fanfare /usr/local/bin/fanfare

FROM debian:bookworm-slim
RUN apt-get update \
    && apt-get install --yes --no-install-recommends ca-certificates \
    && rm -rf /var/lib/apt/lists/* \
    && groupadd --system --gid 10001 fanfare \
    && useradd --system --uid 10001 --gid 10001 fanfare \
    && install --directory --owner=fanfare --group=fanfare /var/lib/fanfare /var/lib/fanfare/media
COPY --from=build /usr/local/bin/fanfare /usr/local/bin/fanfare
# A number, so that Kubernetes can tell that it is not root.
USER 10001:10001
EXPOSE 8080
ENTRYPOINT ["fanfare"]
