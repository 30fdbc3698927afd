import { z } from 'zod';
import { durationSchema, parseDuration } from '../../../object/duration.ts';
import type { DeepReadonly } from '../../../object/object.ts';
import { clusterRules } from '../../../schema/cluster-rule.ts';
import { httpUrlSchema } from '../../common/http-url.ts';

const MAX_QUERY_CHARACTERS = 16_384;
const MAX_HEADERS = 20;
const MAX_CONDITION_CHARACTERS = 4096;
const MAX_COUNT = 1_000_000;
const MIN_INTERVAL_MS = 1000;
const MAX_TIMEOUT_MS = 60_000;

const ONE_PROVIDER = 'must have exactly one of prometheus and http';
const ONE_VALUE = 'must have exactly one of jsonPath and value';
const ONE_CREDENTIAL = 'must have at most one of secretRef and basicAuthSecretRef';
const UNUSED_AUTHORITY = 'must not have caSecretRef with insecure, which verifies no certificate';
const WITHOUT_QUERY = 'must have no query and no fragment';
const NEEDS_INTERVAL = 'interval must be specified when count > 1';
const AT_LEAST_LIMITS = 'count must be >= failureLimit and >= inconclusiveLimit';
const SHORT_INTERVAL = 'must be at least 1s';
const LONG_TIMEOUT = 'must be more than 0 and at most 60s';
/** Credentials are in Secrets, and these are set by Sluice or change the connection. */
const RESERVED_HEADERS =
  /^(authorization|proxy-authorization|cookie|host|content-length|content-type|transfer-encoding|connection|upgrade|te|trailer|expect|keep-alive)$/i;
const HEADER_RULE =
  'must be the name of a header that is no credential and is not set by Sluice; credentials belong into the Secret of secretRef or basicAuthSecretRef';

const secretKeyRef = (what: string, key: string) =>
  z
    .object({
      name: z.string().min(1).max(253).describe('Name of a Secret in the same namespace.'),
      key: z.string().min(1).max(253).default(key).describe(`Key of the Secret. Default: ${key}.`),
    })
    .describe(what);

const connection = {
  timeout: durationSchema
    .refine((text) => (parseDuration(text) ?? 0) > 0 && (parseDuration(text) ?? 0) <= MAX_TIMEOUT_MS, LONG_TIMEOUT)
    .default('10s')
    .describe('Time for one request, at most 60s. Default 10s.'),
  secretRef: secretKeyRef('Secret with a token that is sent as "Authorization: Bearer".', 'token').optional(),
  basicAuthSecretRef: z
    .object({ name: z.string().min(1).max(253).describe('Name of a Secret in the same namespace.') })
    .optional()
    .describe('Secret whose keys username and password are sent as "Authorization: Basic".'),
  insecure: z
    .boolean()
    .optional()
    .describe(
      'If true, the certificate of the source is not verified, so that values may come from another server, which gets the credentials too. Prefer caSecretRef.',
    ),
  caSecretRef: secretKeyRef(
    'Secret with certificates (PEM) of authorities that are trusted for the source.',
    'ca.crt',
  ).optional(),
  headers: z
    .array(
      z.object({
        name: z
          .string()
          .min(1)
          .max(128)
          .regex(/^[A-Za-z0-9-]+$/)
          .refine((name) => !RESERVED_HEADERS.test(name), HEADER_RULE)
          .describe('Name of the header.'),
        value: z
          .string()
          .max(1024)
          .regex(/^[\x20-\x7e]*$/)
          .describe('Value of the header.'),
      }),
    )
    .max(MAX_HEADERS)
    .optional()
    .describe('Further headers of each request, such as X-Scope-OrgID.'),
};

interface Access {
  readonly secretRef?: unknown;
  readonly basicAuthSecretRef?: unknown;
  readonly caSecretRef?: unknown;
  readonly insecure?: boolean | undefined;
}

const hasOneCredential = ({ secretRef, basicAuthSecretRef }: Access) =>
  secretRef === undefined || basicAuthSecretRef === undefined;
const usesAuthority = ({ insecure, caSecretRef }: Access) => insecure !== true || caSecretRef === undefined;
const ACCESS_RULES = [
  ['!has(self.secretRef) || !has(self.basicAuthSecretRef)', ONE_CREDENTIAL],
  ['!has(self.insecure) || !self.insecure || !has(self.caSecretRef)', UNUSED_AUTHORITY],
] as const;

const condition = z.string().min(1).max(MAX_CONDITION_CHARACTERS);
const query = z.string().min(1).max(MAX_QUERY_CHARACTERS);

const prometheus = z
  .object({
    address: httpUrlSchema
      .refine((text) => !/[?#]/.test(text), WITHOUT_QUERY)
      .meta(clusterRules(["!self.matches(r'[?#]')", WITHOUT_QUERY]))
      .describe('Address of the Prometheus server, such as https://prometheus.example.com.'),
    query: query.describe('Instant query in PromQL. Placeholders: {{args.<name>}} and {{targets}}.'),
    samplesQuery: query
      .optional()
      .describe('Instant query for the number of samples that the value is made of; see minSamples.'),
    ...connection,
  })
  .refine(hasOneCredential, ONE_CREDENTIAL)
  .refine(usesAuthority, UNUSED_AUTHORITY)
  .meta(clusterRules(...ACCESS_RULES))
  .describe('Instant query of a Prometheus server. The value is a list of the samples of a vector, or a scalar.');

const http = z
  .object({
    url: httpUrlSchema.describe('Address of the request. It has no placeholders.'),
    method: z.enum(['GET', 'POST']).default('GET').describe('Method of the request. Default GET.'),
    parameters: z
      .array(
        z.object({
          name: z.string().min(1).max(128).describe('Name of the parameter.'),
          value: z.string().max(4096).describe('Value. Placeholders: {{args.<name>}} and {{targets}}.'),
        }),
      )
      .max(MAX_HEADERS)
      .optional()
      .describe('Parameters of the query of the address.'),
    body: z
      .string()
      .max(65_536)
      .optional()
      .describe('Body of a POST in JSON. Placeholders: {{args.<name>}} and {{targets}}.'),
    jsonPath: z
      .string()
      .min(1)
      .max(1024)
      .optional()
      .describe('JSONPath of the value in the response, such as {$.data.errors}: fields, indexes and [*].'),
    value: condition.optional().describe('CEL expression of the value; its variable is body.'),
    samples: condition
      .optional()
      .describe('CEL expression of the number of samples that the value is made of; its variable is body.'),
    ...connection,
  })
  .refine(({ jsonPath, value }) => (jsonPath === undefined) !== (value === undefined), ONE_VALUE)
  .refine(hasOneCredential, ONE_CREDENTIAL)
  .refine(usesAuthority, UNUSED_AUTHORITY)
  .meta(clusterRules(['has(self.jsonPath) != has(self.value)', ONE_VALUE], ...ACCESS_RULES))
  .describe('Request whose response is JSON.');

const limit = (what: string, number: number) =>
  z.int().min(0).max(MAX_COUNT).default(number).describe(`${what} Default ${number}.`);

export const metricSchema = z
  .object({
    name: z
      .string()
      .max(63)
      .regex(/^[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?$/, 'must consist of letters, digits, ".", "_" and "-"')
      .describe('Name of the metric, unique in the template.'),
    interval: durationSchema
      .refine((text) => (parseDuration(text) ?? 0) >= MIN_INTERVAL_MS, SHORT_INTERVAL)
      .optional()
      .describe('Pause between two measurements, at least 1s. Without it, one measurement is taken.'),
    initialDelay: durationSchema.optional().describe('Pause before the first measurement.'),
    count: z
      .int()
      .min(0)
      .max(MAX_COUNT)
      .optional()
      .describe(
        'Number of measurements. Without it (or with 0), one is taken if there is no interval; otherwise measurements go on until the run ends.',
      ),
    failureLimit: limit('Number of failed measurements that are tolerated.', 0),
    inconclusiveLimit: limit('Number of inconclusive measurements that are tolerated.', 0),
    consecutiveErrorLimit: limit('Number of errors in a row that are tolerated.', 4),
    successCondition: condition
      .optional()
      .describe('CEL expression of a successful measurement. Variables: result, canary, and baseline.'),
    failureCondition: condition
      .optional()
      .describe('CEL expression of a failed measurement. Variables: result, canary, and baseline.'),
    compareWithUntouched: z
      .boolean()
      .optional()
      .describe(
        'If true, each measurement is also taken for the targets that the rollout has not changed yet; its value is the variable baseline.',
      ),
    minSamples: z
      .int()
      .min(1)
      .optional()
      .describe('Number of samples below which a measurement is inconclusive; see samplesQuery and samples.'),
    provider: z
      .object({ prometheus: prometheus.optional(), http: http.optional() })
      .refine((provider) => (provider.prometheus === undefined) !== (provider.http === undefined), ONE_PROVIDER)
      .meta(clusterRules(['has(self.prometheus) != has(self.http)', ONE_PROVIDER]))
      .describe('Source of the values.'),
  })
  .refine(({ count, interval }) => (count ?? 0) <= 1 || interval !== undefined, NEEDS_INTERVAL)
  .refine(
    ({ count, failureLimit, inconclusiveLimit }) =>
      (count ?? 0) === 0 || Math.max(failureLimit, inconclusiveLimit) <= (count ?? 0),
    AT_LEAST_LIMITS,
  )
  .meta(
    clusterRules(
      ['!has(self.count) || self.count <= 1 || has(self.interval)', NEEDS_INTERVAL],
      [
        '!has(self.count) || self.count == 0 || (self.failureLimit <= self.count && self.inconclusiveLimit <= self.count)',
        AT_LEAST_LIMITS,
      ],
    ),
  )
  .describe('A value that is measured, and what it must be.');

export type AnalysisMetric = DeepReadonly<z.output<typeof metricSchema>>;
