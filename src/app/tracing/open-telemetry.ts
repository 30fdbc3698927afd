import { randomUUID } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { Agent as HttpAgent } from 'node:http';
import { Agent as HttpsAgent } from 'node:https';
import { setTimeout as sleep } from 'node:timers/promises';
import { DiagLogLevel, diag } from '@opentelemetry/api';
import { type ExportResult, ExportResultCode } from '@opentelemetry/core';
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-http';
import {
  defaultResource,
  detectResources,
  resourceAttributesEnvDetector,
  resourceFromAttributes,
  serviceNameEnvDetector,
} from '@opentelemetry/resources';
import {
  AlwaysOffSampler,
  AlwaysOnSampler,
  BatchSpanProcessor,
  ParentBasedSampler,
  type ReadableSpan,
  type Sampler,
  type SpanExporter,
  TraceIdRatioBasedSampler,
  TracerProvider,
} from '@opentelemetry/sdk-trace';
import { messageOf, SluiceError } from '../../foundation/sluice-error.ts';
import type { Tracer } from '../../foundation/tracing/traced.ts';
import { sluiceVersion } from '../sluice-version.ts';
import { OpenTelemetryTracer } from './open-telemetry-tracer.ts';
import type { TracingSettings } from './tracing-settings.ts';

const MAX_WARNINGS = 20;
const MAX_VALUE_LENGTH = 512;

export interface OpenTelemetryTracing {
  readonly tracer: Tracer;
  /** Sends what was recorded, for at most the time of one export. Never rejects. */
  stop(): Promise<void>;
}

/** Starts the SDK. Everything that imports it is below this module, which is loaded only if tracing is on. */
export async function startOpenTelemetry(
  settings: TracingSettings,
  warn: (message: string) => void,
): Promise<OpenTelemetryTracing> {
  const { url, exportTimeoutMs } = settings;
  const agent = await agentOf(settings);
  const exporter = new OTLPTraceExporter({
    url: url.href,
    timeoutMillis: exportTimeoutMs,
    httpAgentOptions: () => agent,
  });
  const address = `${url.origin}${url.pathname}`;
  const provider = new TracerProvider({
    resource: defaultResource()
      .merge(
        resourceFromAttributes({
          'service.name': 'sluice',
          'service.version': sluiceVersion(),
          'service.instance.id': randomUUID(),
        }),
      )
      .merge(detectResources({ detectors: [resourceAttributesEnvDetector, serviceNameEnvDetector] })),
    sampler: samplerOf(settings),
    spanLimits: { attributeValueLengthLimit: MAX_VALUE_LENGTH },
    spanProcessors: [
      new BatchSpanProcessor({
        exporter: reporting(exporter, (message) =>
          warn(`cannot send spans to ${address}: ${message}; spans are lost until it accepts them`),
        ),
        maxQueueSize: settings.maxQueuedSpans,
        maxExportBatchSize: settings.maxSpansOfExport,
        scheduledDelayMillis: settings.exportDelayMs,
        exportTimeoutMillis: exportTimeoutMs,
      }),
    ],
  });
  diag.setLogger(eachOnce(warn), { logLevel: DiagLogLevel.WARN, suppressOverrideMessage: true });
  return {
    tracer: new OpenTelemetryTracer(provider.getTracer('sluice', sluiceVersion())),
    async stop() {
      const ended = new AbortController();
      const end = () => ended.abort();
      // Failures are reported by the exporter.
      const shutdown = provider.shutdown().then(end, end);
      const timeout = sleep(exportTimeoutMs, undefined, { signal: ended.signal }).catch(() => undefined);
      await Promise.race([shutdown, timeout]);
      // A collector that does not respond keeps the process alive no longer.
      agent.destroy();
      diag.disable();
    },
  };
}

/** Keeps connections, and ends one on which nothing happens, also while it connects. */
async function agentOf({ url, tls, exportTimeoutMs }: TracingSettings): Promise<HttpAgent> {
  const common = { keepAlive: true, timeout: exportTimeoutMs };
  if (url.protocol === 'http:') return new HttpAgent(common);
  const files = await Promise.all(Object.entries(tls).map(async ([name, path]) => [name, await read(path)] as const));
  return new HttpsAgent({ ...common, ...Object.fromEntries(files) });
}

async function read(path: string): Promise<Buffer> {
  try {
    return await readFile(path);
  } catch (error) {
    throw new SluiceError('InvalidInput', `cannot read a certificate for the collector: ${messageOf(error)}`, {
      cause: error,
    });
  }
}

function samplerOf({ sampler: { name, ratio } }: TracingSettings): Sampler {
  const isParentBased = name.startsWith('parentbased_');
  let root: Sampler = new AlwaysOnSampler();
  if (name.endsWith('always_off')) root = new AlwaysOffSampler();
  else if (name.endsWith('traceidratio')) root = new TraceIdRatioBasedSampler(ratio);
  return isParentBased ? new ParentBasedSampler({ root }) : root;
}

/** Reports the first of consecutive failures. */
function reporting(exporter: SpanExporter, onFailure: (message: string) => void): SpanExporter {
  let isFailing = false;
  return {
    export(spans: ReadableSpan[], done: (result: ExportResult) => void) {
      exporter.export(spans, (result) => {
        const failed = result.code !== ExportResultCode.SUCCESS;
        if (failed && !isFailing) onFailure(result.error === undefined ? 'unknown error' : messageOf(result.error));
        isFailing = failed;
        done(result);
      });
    },
    shutdown: () => exporter.shutdown(),
    forceFlush: async () => exporter.forceFlush?.(),
  };
}

/** Warnings of the SDK, such as dropped spans: each kind once. */
function eachOnce(warn: (message: string) => void) {
  const seen = new Set<string>();
  const report = (message: string) => {
    const kind = message.replace(/\d+/g, '#');
    if (seen.has(kind) || seen.size >= MAX_WARNINGS) return;
    seen.add(kind);
    warn(message);
  };
  const ignore = () => undefined;
  // Errors are those of exports, which are reported with their address.
  return { error: ignore, warn: report, info: ignore, debug: ignore, verbose: ignore };
}
