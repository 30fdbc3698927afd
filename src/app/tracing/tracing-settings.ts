import { z } from 'zod';
import { SluiceError } from '../../foundation/sluice-error.ts';

/** Milliseconds that one export may take, retries included: spans that wait for a slow collector are memory. */
const MAX_EXPORT_MS = 2000;
const MAX_QUEUED_SPANS = 65_536;
const MAX_DELAY_MS = 60_000;

export interface TracingSettings {
  /** The address that spans are sent to. */
  readonly url: URL;
  readonly sampler: { readonly name: SamplerName; readonly ratio: number };
  readonly exportTimeoutMs: number;
  readonly maxQueuedSpans: number;
  readonly maxSpansOfExport: number;
  readonly exportDelayMs: number;
  /** Paths of PEM files for a collector behind TLS. */
  readonly tls: { readonly ca?: string; readonly cert?: string; readonly key?: string };
}

const SAMPLERS = [
  'always_on',
  'always_off',
  'traceidratio',
  'parentbased_always_on',
  'parentbased_always_off',
  'parentbased_traceidratio',
] as const;
export type SamplerName = (typeof SAMPLERS)[number];

const number = (max: number, fallback: number) => z.coerce.number().int().min(1).max(max).default(fallback);

const schema = z.object({
  OTEL_TRACES_EXPORTER: z.enum(['otlp', 'none']).default('otlp'),
  // Collectors accept JSON and protobuf at one address; gRPC needs another one.
  OTEL_EXPORTER_OTLP_TRACES_PROTOCOL: z.enum(['http/json', 'http/protobuf']).optional(),
  OTEL_EXPORTER_OTLP_PROTOCOL: z.enum(['http/json', 'http/protobuf']).optional(),
  OTEL_TRACES_SAMPLER: z.enum(SAMPLERS).default('parentbased_always_on'),
  OTEL_TRACES_SAMPLER_ARG: z.coerce.number().min(0).max(1).default(1),
  OTEL_EXPORTER_OTLP_TIMEOUT: number(Number.MAX_SAFE_INTEGER, MAX_EXPORT_MS),
  OTEL_EXPORTER_OTLP_TRACES_TIMEOUT: number(Number.MAX_SAFE_INTEGER, MAX_EXPORT_MS),
  OTEL_BSP_MAX_QUEUE_SIZE: number(MAX_QUEUED_SPANS, 2048),
  OTEL_BSP_MAX_EXPORT_BATCH_SIZE: number(MAX_QUEUED_SPANS, 512),
  OTEL_BSP_SCHEDULE_DELAY: number(MAX_DELAY_MS, 5000),
});

/**
 * Reads the standard environment variables of OpenTelemetry. Undefined if they do not turn tracing on, which takes the address of a
 * collector. Throws InvalidInput with the name of the variable.
 */
export function tracingSettings(environment: NodeJS.ProcessEnv): TracingSettings | undefined {
  // An empty variable means the same as none.
  const set = Object.fromEntries(
    Object.entries(environment).filter(([, value]) => value !== undefined && value !== ''),
  );
  const { OTEL_EXPORTER_OTLP_ENDPOINT: endpoint, OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: tracesEndpoint } = set;
  if (endpoint === undefined && tracesEndpoint === undefined) return undefined;
  if (set.OTEL_SDK_DISABLED?.toLowerCase() === 'true') return undefined;
  const read = schema.safeParse(set);
  if (!read.success) {
    const [{ path, message }] = read.error.issues as [z.core.$ZodIssue];
    const [name] = path;
    throw new SluiceError('InvalidInput', `environment variable ${String(name)}: ${message}`);
  }
  const { data } = read;
  if (data.OTEL_TRACES_EXPORTER === 'none') return undefined;
  const file = (name: string) => set[`OTEL_EXPORTER_OTLP_TRACES_${name}`] ?? set[`OTEL_EXPORTER_OTLP_${name}`];
  const [ca, cert, key] = [file('CERTIFICATE'), file('CLIENT_CERTIFICATE'), file('CLIENT_KEY')];
  return {
    url:
      tracesEndpoint === undefined
        ? urlOf('OTEL_EXPORTER_OTLP_ENDPOINT', `${endpoint?.replace(/\/$/, '')}/v1/traces`)
        : urlOf('OTEL_EXPORTER_OTLP_TRACES_ENDPOINT', tracesEndpoint),
    sampler: { name: data.OTEL_TRACES_SAMPLER, ratio: data.OTEL_TRACES_SAMPLER_ARG },
    exportTimeoutMs: Math.min(
      MAX_EXPORT_MS,
      set.OTEL_EXPORTER_OTLP_TRACES_TIMEOUT === undefined
        ? data.OTEL_EXPORTER_OTLP_TIMEOUT
        : data.OTEL_EXPORTER_OTLP_TRACES_TIMEOUT,
    ),
    maxQueuedSpans: data.OTEL_BSP_MAX_QUEUE_SIZE,
    maxSpansOfExport: Math.min(data.OTEL_BSP_MAX_EXPORT_BATCH_SIZE, data.OTEL_BSP_MAX_QUEUE_SIZE),
    exportDelayMs: data.OTEL_BSP_SCHEDULE_DELAY,
    tls: {
      ...(ca === undefined ? {} : { ca }),
      ...(cert === undefined ? {} : { cert }),
      ...(key === undefined ? {} : { key }),
    },
  };
}

/** The value is not in the message: it may contain credentials. */
function urlOf(name: string, text: string): URL {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url !== undefined && ['http:', 'https:'].includes(url.protocol)) return url;
  throw new SluiceError(
    'InvalidInput',
    `environment variable ${name}: must be a URL of a collector, such as http://localhost:4318`,
  );
}
