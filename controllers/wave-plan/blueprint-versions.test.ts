import { beforeEach, expect, test } from 'vitest';
import type { PackageRevision } from '../../src/package/model/revision/package-revision.ts';
import { type BlueprintStore, type MadeFrom, madeFrom } from './blueprint-versions.ts';

const LENGTH = 20_000;
let reads = 0;

function revision(repository: string, name: string, number: number, task: object): PackageRevision {
  const key = { repository, package: name, workspace: `v${number}` };
  const lifecycle = repository === 'blueprints' ? 'Published' : 'Proposed';
  const of = { namespace: 'default', name: `${repository}.${name}.v${number}`, revision: number };
  return { ...of, key, lifecycle, record: { task }, tip: { facts: { annotations: [] } } } as unknown as PackageRevision;
}

/** Each is a copy of the one before it, and the first one is made by a task. */
function history(name: string, first: object): PackageRevision[] {
  return Array.from({ length: LENGTH }, (_, at) => {
    const copy = { type: 'edit', edit: { sourceRef: { name: `apps.${name}.v${at}` } } };
    return revision('apps', name, at + 1, at === 0 ? first : copy);
  });
}

const blueprint = revision('blueprints', 'web', 1, {});
const cloned = history('cloned', {
  type: 'clone',
  clone: { upstreamRef: { upstreamRef: { name: blueprint.name } } },
});
const other = history('other', { type: 'init', init: {} });
const [ring] = history('ring', { type: 'edit', edit: { sourceRef: { name: `apps.ring.v${LENGTH}` } } }).slice(0, 1);
const rows = new Map(
  [blueprint, ...cloned, ...other, ...(ring === undefined ? [] : [ring])].map((one) => [one.name, one]),
);
let made: MadeFrom;

beforeEach(() => {
  reads = 0;
  const store = {
    list: () => [blueprint],
    find: (id: string) => {
      reads += 1;
      return rows.get(id.slice('default/'.length));
    },
    repositoryOf: () => ({ url: 'https://git.example.com/blueprints.git' }),
  } as unknown as BlueprintStore;
  made = madeFrom({ repository: 'blueprints', package: 'web' }, 'default', store);
});

test('a long history of copies of a clone', () => {
  expect(made.byRecord(cloned.at(-1) as PackageRevision)).toBe(true);
  expect(made.byRecord(other.at(-1) as PackageRevision)).toBe(false);
});

test('what is known not to be of the blueprint is not walked again', () => {
  for (const one of other.slice(-100)) expect(made.byRecord(one)).toBe(false);
  expect(reads).toBeLessThan(LENGTH + 300);
});
