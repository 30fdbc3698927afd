import { isSluiceError, messageOf, SluiceError } from '../../src/foundation/sluice-error.ts';
import type { Client } from '../../src/resource/client/client.ts';
import { fillPlaceholders } from '../../src/resource/kinds/sluice/wave/analysis-placeholders.ts';
import type { AnalysisRun, MeasurementResult } from '../../src/resource/kinds/sluice/wave/analysis-run.ts';
import { usesTargets } from '../../src/resource/kinds/sluice/wave/check-metrics.ts';
import type { AnalysisMetric } from '../../src/resource/kinds/sluice/wave/metric-schema.ts';
import { parseDuration } from '../../src/resource/object/duration.ts';
import { type GroupMeasurement, judge } from '../../src/rollout/analysis/judge.ts';
import { jsonValue, prometheusValue, sampleCount } from '../../src/rollout/analysis/measured-value.ts';
import { redact } from '../notification/redact.ts';
import { secretValue } from '../notification/secret-value.ts';
import type { FetchJson } from './fetch-json.ts';
import { hideSecrets, withoutSecrets } from './hide-secret.ts';

const MAX_CHARACTERS = 400;
const DEFAULT_TIMEOUT_MS = 10_000;
/** Of a query or a body with the names of all targets. */
const MAX_FILLED_CHARACTERS = 1024 * 1024;

export interface MeasurementContext {
  readonly client: Client;
  readonly fetch: FetchJson;
  readonly namespace: string;
  readonly args: ReadonlyMap<string, string>;
  readonly targets: NonNullable<AnalysisRun['spec']['scope']>['targets'];
  readonly now: () => number;
  readonly signal: AbortSignal;
}

/** Takes one measurement of a metric. What prevents it is an outcome, unless `signal` aborts. */
export async function takeMeasurement(metric: AnalysisMetric, context: MeasurementContext): Promise<MeasurementResult> {
  const startedAt = new Date(context.now()).toISOString();
  let secrets: readonly string[] = [];
  const end = ({ phase, value, message }: Omit<MeasurementResult, 'startedAt' | 'finishedAt'>) => {
    // A source can return what was sent to it.
    const safe = (text: string) => redact(withoutSecrets(text, secrets), MAX_CHARACTERS);
    return {
      ...{ phase, startedAt, finishedAt: new Date(context.now()).toISOString() },
      ...(value === undefined ? {} : { value: safe(value) }),
      ...(message === undefined ? {} : { message: safe(message) }),
    };
  };
  try {
    const { canary = [], untouched = [] } = context.targets ?? {};
    if (usesTargets(metric) && canary.length === 0)
      return end({ phase: 'Inconclusive', message: 'spec.scope.targets.canary names no target to measure' });
    if (metric.compareWithUntouched === true && untouched.length === 0)
      return end({
        phase: 'Inconclusive',
        message: 'spec.scope.targets.untouched names no target to compare with, as in the last wave',
      });
    const source = metric.provider.prometheus ?? metric.provider.http;
    const timeoutMs = parseDuration(source?.timeout ?? '') ?? DEFAULT_TIMEOUT_MS;
    const signal = AbortSignal.any([context.signal, AbortSignal.timeout(timeoutMs)]);
    const read = (reference: SecretKey, field: string) =>
      secretValue(context.client, context.namespace, reference, `which ${field} of the provider refers to`, signal);
    const credential = await readCredential(source, read);
    secrets = credential?.secrets ?? [];
    const authorities = source?.caSecretRef === undefined ? undefined : await read(source.caSecretRef, 'caSecretRef');
    const fetch: FetchJson = async (request) =>
      hideSecrets(await context.fetch({ ...request, authorities, insecure: source?.insecure }), secrets);
    const measure = measurer(metric, { ...context, fetch, authorization: credential?.authorization, signal });
    const [changed, baseline] = await Promise.all([
      measure(canary),
      metric.compareWithUntouched === true ? measure(untouched) : undefined,
    ]);
    return end(judge(metric, { canary: changed, baseline }));
  } catch (error) {
    context.signal.throwIfAborted();
    if (!isSluiceError(error)) throw error;
    return end({ phase: 'Error', message: messageOf(error) });
  }
}

type SecretKey = Parameters<typeof secretValue>[2];
type Measure = (targets: readonly string[]) => Promise<GroupMeasurement>;

interface Credential {
  /** Value of the header Authorization. */
  readonly authorization: string;
  /** What a source must not return into a status. */
  readonly secrets: readonly string[];
}

type ReadSecret = (reference: SecretKey, field: string) => Promise<string>;

/** Rejects with NotFound or InvalidInput for a Secret that does not exist, or has not the keys. */
async function readCredential(
  source: AnalysisMetric['provider']['prometheus'] | AnalysisMetric['provider']['http'],
  read: ReadSecret,
): Promise<Credential | undefined> {
  const { secretRef, basicAuthSecretRef } = source ?? {};
  if (secretRef !== undefined) {
    const token = await read(secretRef, 'secretRef');
    return { authorization: `Bearer ${token}`, secrets: [token] };
  }
  if (basicAuthSecretRef === undefined) return undefined;
  const part = (key: string) => read({ ...basicAuthSecretRef, key }, 'basicAuthSecretRef');
  const [username, password] = [await part('username'), await part('password')];
  // It would end the name for the server.
  if (username.includes(':'))
    throw new SluiceError(
      'InvalidInput',
      `the username in Secret ${basicAuthSecretRef.name}, which basicAuthSecretRef of the provider refers to, must not contain ":"`,
    );
  const encoded = Buffer.from(`${username}:${password}`).toString('base64');
  return { authorization: `Basic ${encoded}`, secrets: [encoded, password] };
}

/** Returns a function that measures a group of targets. */
function measurer(
  { minSamples, provider: { prometheus, http } }: AnalysisMetric,
  { fetch, args, authorization, signal }: MeasurementContext & { readonly authorization: string | undefined },
): Measure {
  const headers = {
    ...Object.fromEntries(((prometheus ?? http)?.headers ?? []).map(({ name, value }) => [name.toLowerCase(), value])),
    ...(authorization === undefined ? {} : { authorization }),
  };
  const fill = (text: string, targets: string) => {
    const filled = fillPlaceholders(text, args, targets);
    if (filled.length <= MAX_FILLED_CHARACTERS) return filled;
    const message = `the request has ${filled.length} characters with the names of all targets, at most ${MAX_FILLED_CHARACTERS}; select by a label instead of {{targets}}`;
    throw new SluiceError('LimitExceeded', message);
  };
  if (prometheus !== undefined) {
    const url = `${prometheus.address.replace(/\/+$/, '')}/api/v1/query`;
    const query = async (text: string, targets: readonly string[]) => {
      // A dot is the only character of a name with a meaning in regular expressions; this form needs no escape in any quotes.
      const body = new URLSearchParams({
        query: fill(text, targets.map((name) => name.replaceAll('.', '[.]')).join('|')),
      });
      const form = { ...headers, 'content-type': 'application/x-www-form-urlencoded' };
      return prometheusValue(await fetch({ url, method: 'POST', headers: form, body: body.toString(), signal }));
    };
    return async (targets) => ({
      found: await query(prometheus.query, targets),
      samples:
        minSamples === undefined || prometheus.samplesQuery === undefined
          ? undefined
          : sampleCount(await query(prometheus.samplesQuery, targets)),
    });
  }
  if (http === undefined) throw new SluiceError('InvalidInput', 'the metric has no provider');
  return async (targets) => {
    const names = targets.join(',');
    const url = new URL(http.url);
    for (const { name, value } of http.parameters ?? []) url.searchParams.append(name, fill(value, names));
    const body = http.method === 'POST' ? fill(http.body ?? '', names) : undefined;
    const json = body === undefined ? headers : { ...headers, 'content-type': 'application/json' };
    const response = await fetch({ url: url.href, method: http.method, headers: json, body, signal });
    return {
      found: jsonValue(http, response),
      samples:
        minSamples === undefined || http.samples === undefined
          ? undefined
          : sampleCount(jsonValue({ ...http, jsonPath: undefined, value: http.samples }, response)),
    };
  };
}
