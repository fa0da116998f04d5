"""Spans and metrics of exchanges, named as in OpenTelemetry's conventions for generative AI.

OpenTelemetry's own variables configure the exporters (`OTEL_EXPORTER_OTLP_ENDPOINT`, `OTEL_SERVICE_NAME` and others).
The packages of the extra `otel` are imported only if telemetry is switched on.
"""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import Any

from foldline import __version__
from foldline.errors import ConfigError, extra_hint
from foldline.proxy.api_calls import VENDORS
from foldline.proxy.exchange_reports import ExchangeReport, Reporter

PROVIDERS = {"anthropic": "anthropic", "openai": "openai", "gemini": "gcp.gemini"}
"""The names of the vendors in OpenTelemetry's conventions."""
_SECONDS = (0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92)
_TOKENS = (1, 4, 16, 64, 256, 1024, 4096, 16384, 65536, 262144, 1048576, 4194304, 16777216, 67108864)


def open_telemetry(tracer_provider: Any = None, meter_provider: Any = None) -> Reporter:
    """A reporter that makes a span and metrics for each exchange.

    If no tracer and meter providers are passed, those that the environment configures are used. Raises `ConfigError` if
    packages are missing.
    """
    if tracer_provider is None or meter_provider is None:
        tracer_provider, meter_provider = _providers()
    tracer = tracer_provider.get_tracer("foldline", __version__)
    meter = meter_provider.get_meter("foldline", __version__)
    tokens = meter.create_histogram(
        "gen_ai.client.token.usage", unit="{token}", explicit_bucket_boundaries_advisory=_TOKENS
    )
    duration = meter.create_histogram(
        "gen_ai.client.operation.duration", unit="s", explicit_bucket_boundaries_advisory=_SECONDS
    )
    trace = import_module("opentelemetry.trace")
    context_of = import_module("opentelemetry.trace.propagation.tracecontext").TraceContextTextMapPropagator()

    def report(found: ExchangeReport) -> None:
        common, error = _attributes(found), _error(found)
        labels = {**common, **({"error.type": error} if error else {})}
        parent = context_of.extract({"traceparent": found.traceparent}) if found.traceparent else None
        span = tracer.start_span(
            f"chat {found.model}".strip(),
            context=parent,
            kind=trace.SpanKind.CLIENT,
            attributes={**labels, **_figures(found)},
            start_time=int(found.started_at * 1e9),
        )
        if error:
            span.set_status(trace.StatusCode.ERROR)
        span.end(end_time=int((found.started_at + found.seconds) * 1e9))
        duration.record(found.seconds, labels)
        if found.input_tokens:
            tokens.record(found.input_tokens, {**common, "gen_ai.token.type": "input"})
            tokens.record(found.output_tokens, {**common, "gen_ai.token.type": "output"})

    return report


def _attributes(found: ExchangeReport) -> dict[str, Any]:
    return {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": PROVIDERS.get(VENDORS.get(found.format, ""), found.format),
        "gen_ai.request.model": found.model,
    }


def _figures(found: ExchangeReport) -> dict[str, Any]:
    values = {
        "gen_ai.conversation.id": found.session,
        "http.response.status_code": found.status,
        "gen_ai.usage.input_tokens": found.input_tokens,
        "gen_ai.usage.output_tokens": found.output_tokens,
        "gen_ai.usage.cache_read.input_tokens": found.cache_read_tokens,
        "gen_ai.usage.cache_creation.input_tokens": found.cache_write_tokens,
        "foldline.recall_calls": found.recall_calls,
        "foldline.cache_miss": found.miss,
        "foldline.fault": found.fault,
    }
    kept = {name: value for name, value in values.items() if value}
    return {**kept, "foldline.folded": found.is_folded, "foldline.retried": found.is_retried}


def _error(found: ExchangeReport) -> str:
    """The value of `error.type`; "" if the exchange had no error."""
    if found.status >= 400:
        return str(found.status)
    return "" if found.is_complete else "incomplete"


def _providers() -> tuple[Any, Any]:
    """A tracer provider and a meter provider, with the exporters that the environment configures."""
    missing = [name for name in ("opentelemetry.sdk", "opentelemetry.exporter") if not _is_installed(name)]
    if missing:
        raise ConfigError(f"telemetry needs {' and '.join(missing)}", hint=extra_hint("otel"))
    traces = import_module("opentelemetry.sdk.trace").TracerProvider()
    batch = import_module("opentelemetry.sdk.trace.export").BatchSpanProcessor
    exporter = "opentelemetry.exporter.otlp.proto.http"
    traces.add_span_processor(batch(import_module(f"{exporter}.trace_exporter").OTLPSpanExporter()))
    metrics = import_module("opentelemetry.sdk.metrics")
    periodic = import_module("opentelemetry.sdk.metrics.export").PeriodicExportingMetricReader
    reader = periodic(import_module(f"{exporter}.metric_exporter").OTLPMetricExporter())
    return traces, metrics.MeterProvider(metric_readers=[reader])


def _is_installed(name: str) -> bool:
    try:
        return find_spec(name) is not None
    except ModuleNotFoundError:
        return False
