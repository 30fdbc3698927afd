import { type Pool, type Problem, poolFromPrefix, poolsFromInstance } from '../../../../src/allocation/pool.ts';
import type { Client } from '../../../../src/resource/client/client.ts';
import { ipPrefixKind, networkInstanceKind } from '../../../../src/resource/kinds/ipam/ipam.ts';
import type { Stored } from '../../../../src/resource/object/object.ts';

export interface Pools {
  readonly pools: readonly Pool[];
  /** Equal only if the pools are equal. */
  readonly version: string;
}

/** All declared pools: IPPrefix objects and the prefixes of NetworkInstances, without unsupported ones (IPv6). */
export async function readPools(client: Client, signal: AbortSignal): Promise<Pools> {
  const [prefixes, instances] = await Promise.all([
    client.list(ipPrefixKind, { signal }),
    client.list(networkInstanceKind, { signal }),
  ]);
  const found = [...prefixes.items.map(poolFromPrefix), ...instances.items.flatMap(poolsFromInstance)];
  const version = [...prefixes.items, ...instances.items].map(versionOf).join(' ');
  return { pools: found.filter((pool): pool is Pool => !isProblem(pool)), version };
}

function isProblem(pool: Pool | Problem): pool is Problem {
  return 'problem' in pool;
}

function versionOf({ kind, metadata }: Stored): string {
  return `${kind}/${metadata.uid}/${metadata.resourceVersion}`;
}
