import { parseAllDocuments } from 'yaml';
import { mergePackage } from '../../../src/package/merge/merge-package.ts';
import type { PackageFiles } from '../../../src/package/merge/package-files.ts';
import { largePackage } from '../synthetic-package.ts';
import { manifest } from '../synthetic-repository.ts';
import { median, milliseconds, printTable, ratio } from '../table.ts';

const ROUNDS = 15;
const WARM_UP = 5;
const RESOURCES = [10, 100, 1_000];

interface Sides {
  readonly name: string;
  readonly resources: number;
  readonly local: ReadonlyMap<string, string>;
  readonly original: ReadonlyMap<string, string>;
  readonly updated: ReadonlyMap<string, string>;
}

/**
 * Merges of packages in which upstream changed every resource, and the local side every second one, against parsing all three versions
 * and printing one with the same YAML library.
 */
export function mergeRate(): void {
  const rows = [...RESOURCES.map(configMaps), deployments()].map((sides) => {
    const [local, original, updated] = [sides.local, sides.original, sides.updated].map(filesOf) as [
      PackageFiles,
      PackageFiles,
      PackageFiles,
    ];
    const merges = times(() => void mergePackage(local, original, updated));
    const floors = times(() => {
      for (const side of [sides.original, sides.updated]) for (const text of side.values()) parseAllDocuments(text);
      for (const text of sides.local.values()) parseAllDocuments(text).map(String);
    });
    const [merge, floor] = [median(merges), median(floors)];
    const rate = (milliseconds: number) => `${Math.round((sides.resources * 1000) / milliseconds)}/s`;
    return [
      ...[sides.name, `${sides.resources}`, milliseconds(merge), rate(merge)],
      ...[milliseconds(floor), rate(floor), ratio(merge, floor)],
    ];
  });
  printTable(['package', 'resources', 'merge', 'resources', 'floor', 'resources', 'ratio'], rows);
  console.log('\nfloor: parse the three versions, and print one of them.\n');
}

function configMaps(count: number): Sides {
  const side = (revision: number, local: boolean) =>
    new Map(
      Array.from({ length: count }, (_, number) => {
        const text = manifest(number, 0, revision);
        return [`config-${number}.yaml`, local && number % 2 === 0 ? text.replace('key-7: value', 'key-7: own') : text];
      }),
    );
  return {
    name: 'ConfigMaps',
    resources: count,
    local: side(1, true),
    original: side(1, false),
    updated: side(2, false),
  };
}

function deployments(): Sides {
  const original = new Map([...largePackage()].filter(([path]) => path.startsWith('deployment-')));
  const change = (from: string, to: string, every: number) =>
    new Map([...original].map(([path, text], index) => [path, index % every === 0 ? text.replace(from, to) : text]));
  return {
    ...{ name: 'Deployments with comments', resources: original.size, original },
    local: change('cpu: 100m', 'cpu: 200m', 2),
    updated: change('web:v1', 'web:v2', 1),
  };
}

function filesOf(texts: ReadonlyMap<string, string>): PackageFiles {
  return new Map([...texts].map(([path, text]) => [path, { data: Buffer.from(text) }]));
}

function times(work: () => void): number[] {
  const all: number[] = [];
  for (let round = -WARM_UP; round < ROUNDS; round++) {
    const began = performance.now();
    work();
    if (round >= 0) all.push(performance.now() - began);
  }
  return all;
}
