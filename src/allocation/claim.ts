import * as z from 'zod';
import { parsePrefix, type Range, rangeOf } from './ipv4.ts';
import { describe, instanceKey, instanceReference, type Problem } from './pool.ts';

/**
 * The owner of a value. A claim with the same name in two packages is two owners; in two revisions of one package it is
 * one.
 */
export interface OwnerKey {
  readonly repository: string;
  /** Path of the package in its repository. */
  readonly packagePath: string;
  readonly namespace: string;
  readonly kind: string;
  readonly name: string;
}

/** A request for an address or a prefix, as the spec of an IPClaim states it. */
export interface Claim {
  readonly owner: OwnerKey;
  readonly networkInstance: string;
  readonly kind: 'network' | 'pool' | 'loopback';
  /** Labels that a pool must have; without any, every pool of the network instance may serve. */
  readonly matchLabels: Readonly<Record<string, string>>;
  readonly addressFamily?: 'ipv4' | 'ipv6';
  /** A fixed address (`10.0.0.10/24`, `10.0.0.10`) or, where a prefix is claimed, a fixed prefix. */
  readonly prefix?: string;
  /** Length of a claimed prefix. */
  readonly prefixLength?: number;
  readonly createPrefix?: boolean;
  /** Place in the pool, counted from its first address or its first block of the claimed length, which is 0. */
  readonly index?: number;
  /** The current value in the status of the claim. It is allocated if the pools allow it and it is free. */
  readonly hint?: string;
}

/** A value that is allocated in a revision, according to the status of an IPClaim. */
export interface Assignment {
  readonly owner: OwnerKey;
  readonly networkInstance: string;
  readonly range: Range;
  /** The revision is, or was, published. */
  readonly published: boolean;
  /** Time at which the revision was allocated the value. Milliseconds since the epoch. */
  readonly since: number;
  /** Time at which the last revision with the claim was deleted; undefined while one exists. */
  readonly released?: number;
}

const ipClaim = z.object({
  metadata: z.object({ name: z.string().min(1), namespace: z.string().optional() }),
  spec: z.object({
    kind: z.enum(['network', 'pool', 'loopback']).default('network'),
    networkInstance: instanceReference,
    addressFamily: z.enum(['ipv4', 'ipv6']).optional(),
    prefix: z.string().min(1).optional(),
    prefixLength: z.int().min(1).max(128).optional(),
    createPrefix: z.boolean().optional(),
    index: z.int().nonnegative().optional(),
    selector: z
      .object({
        matchLabels: z.record(z.string(), z.string()).optional(),
        matchExpressions: z.array(z.unknown()).max(0, 'matchExpressions are not supported, use matchLabels').optional(),
      })
      .optional(),
  }),
  status: z.object({ prefix: z.string().optional() }).optional().catch(undefined),
});

/** The claim in an IPClaim object of a package, or the problem of the object. */
export function claimFromObject(object: unknown, repository: string, packagePath: string): Claim | Problem {
  const parsed = ipClaim.safeParse(object);
  if (!parsed.success) return { problem: describe(parsed.error) };
  const { metadata, spec, status } = parsed.data;
  const { name, namespace } = metadata;
  return {
    owner: { repository, packagePath, namespace: namespace || 'default', kind: 'IPClaim', name },
    networkInstance: instanceKey(spec.networkInstance),
    kind: spec.kind,
    matchLabels: spec.selector?.matchLabels ?? {},
    ...(spec.addressFamily === undefined ? {} : { addressFamily: spec.addressFamily }),
    ...(spec.prefix === undefined ? {} : { prefix: spec.prefix }),
    ...(spec.prefixLength === undefined ? {} : { prefixLength: spec.prefixLength }),
    ...(spec.createPrefix === undefined ? {} : { createPrefix: spec.createPrefix }),
    ...(spec.index === undefined ? {} : { index: spec.index }),
    ...(status?.prefix ? { hint: status.prefix } : {}),
  };
}

/** True if the claim requests a block, false if it requests one address. */
export function wantsPrefix(claim: Claim): boolean {
  return claim.kind === 'pool' || claim.createPrefix === true;
}

/** Returns the range in the status of a claim (`hint`); undefined if the status contains no IPv4 value. */
export function statusRange(claim: Claim): Range | undefined {
  return claim.hint === undefined ? undefined : claimedRange(claim, claim.hint);
}

/** The block that a written value means for this claim: `10.0.0.10/24` is one address unless a prefix is claimed. */
export function claimedRange(claim: Claim, text: string): Range | undefined {
  const prefix = parsePrefix(text);
  if (prefix === undefined) return undefined;
  return wantsPrefix(claim) ? prefix.range : rangeOf(prefix.address, 32);
}

/** A text that two owners never share. */
export function ownerText(owner: OwnerKey): string {
  return [owner.repository, owner.packagePath, owner.namespace, owner.kind, owner.name].join('\0');
}

/** Returns the owner as messages name it. */
export function describeOwner(owner: OwnerKey): string {
  return `${owner.kind} ${owner.namespace}/${owner.name} of package ${owner.repository}/${owner.packagePath}`;
}
