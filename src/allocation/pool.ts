import * as z from 'zod';
import { formatRange, type Prefix, parsePrefix, rangeOf } from './ipv4.ts';

export const PREFIX_KINDS = ['network', 'loopback', 'pool', 'aggregate'] as const;
export type PrefixKind = (typeof PREFIX_KINDS)[number];

/** On an IPPrefix: `"true"`: its host address is the gateway of its subnet; `"none"`: addresses are allocated without a gateway. */
export const GATEWAY_LABEL = 'nephio.org/gateway';
/** Annotation of an IPPrefix: a whole number; pools with a lower one are used first. 0 where it is missing. */
export const PRIORITY_ANNOTATION = 'sluice.dev/pool-priority';

/** A prefix that claims are served from. */
export interface Pool {
  readonly name: string;
  readonly namespace: string;
  /** `<namespace>/<name>` of the network instance (a routing context: the same address in another instance is another address). */
  readonly networkInstance: string;
  /** As written; a kind `network` prefix may carry its gateway as host bits. */
  readonly prefix: Prefix;
  readonly kind: PrefixKind;
  /** The labels of the spec with those that every prefix has: address family, kind, length. */
  readonly labels: Readonly<Record<string, string>>;
  readonly priority: number;
}

export interface Problem {
  readonly problem: string;
}

/** An object reference as IPPrefix and IPClaim write it. */
export const instanceReference = z.object({ name: z.string().min(1), namespace: z.string().optional() });

/** The key of a network instance; the namespace is `default` where none is given. */
export function instanceKey(reference: z.infer<typeof instanceReference>): string {
  return `${reference.namespace || 'default'}/${reference.name}`;
}

const labels = z.record(z.string(), z.string());
const metadata = z.object({
  name: z.string().min(1),
  namespace: z.string().optional(),
  annotations: labels.optional(),
});

const ipPrefix = z.object({
  metadata,
  spec: z.object({
    kind: z.enum(PREFIX_KINDS).default('network'),
    networkInstance: instanceReference,
    prefix: z.string(),
    labels: labels.optional(),
  }),
});

const networkInstance = z.object({
  metadata,
  spec: z.object({ prefixes: z.array(z.object({ prefix: z.string(), labels: labels.optional() })).optional() }),
});

/** The pool of an IPPrefix object, or the problem of the object. */
export function poolFromPrefix(object: unknown): Pool | Problem {
  const parsed = ipPrefix.safeParse(object);
  if (!parsed.success) return { problem: describe(parsed.error) };
  const { metadata, spec } = parsed.data;
  return makePool(metadata, instanceKey(spec.networkInstance), spec.kind, spec.prefix, spec.labels ?? {});
}

/**
 * The aggregates of a NetworkInstance object, named after their place in it. A prefix labelled `nephio.org/prefix-kind` is of that
 * kind. Prefixes that cannot be served (IPv6) are returned as problems.
 */
export function poolsFromInstance(object: unknown): (Pool | Problem)[] {
  const parsed = networkInstance.safeParse(object);
  if (!parsed.success) return [{ problem: describe(parsed.error) }];
  const { metadata, spec } = parsed.data;
  return (spec.prefixes ?? []).map((entry, place) => {
    const kind = PREFIX_KINDS.find((known) => known === entry.labels?.['nephio.org/prefix-kind']) ?? 'aggregate';
    const name = `${metadata.name}.prefixes.${place}`;
    return makePool({ ...metadata, name }, instanceKey(metadata), kind, entry.prefix, entry.labels ?? {});
  });
}

function makePool(
  { name, namespace, annotations }: z.infer<typeof metadata>,
  networkInstance: string,
  kind: PrefixKind,
  text: string,
  labels: Readonly<Record<string, string>>,
): Pool | Problem {
  const prefix = parsePrefix(text);
  if (prefix === undefined)
    return { problem: `prefix ${JSON.stringify(text)} of ${name} is no IPv4 prefix such as 10.0.0.0/24` };
  if (kind !== 'network' && prefix.address !== prefix.range.base)
    return {
      problem: `prefix ${text} of ${name} has host bits, which only kind network may have: write ${formatRange(prefix.range)}`,
    };
  const priority = annotations?.[PRIORITY_ANNOTATION] ?? '0';
  if (!/^-?\d{1,9}$/.test(priority))
    return { problem: `annotation ${PRIORITY_ANNOTATION} of ${name} is no whole number: ${priority}` };
  return {
    name,
    namespace: namespace ?? 'default',
    networkInstance,
    prefix,
    kind,
    labels: {
      'nephio.org/address-family': 'ipv4',
      'nephio.org/prefix-kind': kind,
      'nephio.org/prefix-length': String(prefix.range.length),
      ...labels,
    },
    priority: Number(priority),
  };
}

/** The order in which pools are used: priority, name, namespace, address. */
export function comparePools(a: Pool, b: Pool): number {
  return (
    a.priority - b.priority ||
    compareText(a.name, b.name) ||
    compareText(a.namespace, b.namespace) ||
    a.prefix.address - b.prefix.address ||
    a.prefix.range.length - b.prefix.range.length ||
    compareText(a.kind, b.kind)
  );
}

/** By code unit: the same on every machine, whatever its locale. */
export function compareText(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

/** The host address of a prefix written with host bits or as a /32, which is what a gateway prefix carries. */
export function hostAddress(pool: Pool): number | undefined {
  const { address, range } = pool.prefix;
  if (pool.kind !== 'network') return undefined;
  return address !== rangeOf(address, range.length).base || range.length === 32 ? address : undefined;
}

/** One line from a zod error: the first problem with its path. */
export function describe(error: z.ZodError): string {
  const issue = error.issues[0];
  return issue === undefined ? 'invalid' : `${issue.path.join('.') || 'object'}: ${issue.message}`;
}
