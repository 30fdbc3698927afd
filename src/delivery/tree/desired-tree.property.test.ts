import fc from 'fast-check';
import { expect, test } from 'vitest';
import { runs } from '../../../test/support/runs.ts';
import { runAtOnce } from '../../package/index/steps.ts';
import type { TargetSettings } from '../delivery-target.ts';
import { packageKey } from '../selection/select-revisions.ts';
import { BranchFiles, type PresentFile } from './branch-files.ts';
import { desired } from './desired.ts';
import { blobIdOf } from './desired-file.ts';
import type { Desired, DesiredRevision } from './desired-result.ts';
import { DesiredTree } from './desired-tree.ts';
import { readOwner } from './kustomization.ts';
import { manifestsOf } from './manifests.ts';

/*
 * Random histories of a target: packages are published, withdrawn and blocked, other writers and other targets change the branch,
 * repositories cannot be read for a while, changes are kept, settings change, deliveries fail. A tree that follows all of it gives what a new
 * one computes from everything.
 */

const PATHS = ['a', 'a/b', 'a/b/c', 'b', 'c/d', 'c', 'e', '../x'] as const;
const DIRECTORY = 'k8s';

function bytes(text: string): Uint8Array {
  return new TextEncoder().encode(text);
}

const app = (name: string) => `apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: ${name}\n`;

const CONTENTS: readonly Readonly<Record<string, string>>[] = [
  { 'app.yaml': app('x') },
  { 'app.yaml': app('y'), 'sub/more.yaml': app('z') },
  { 'README.md': 'nothing' },
  { 'app.yaml': app('y'), 'b/app.yaml': app('o') },
  { 'a.yaml': 'broken: [' },
  { 's.yaml': 'apiVersion: v1\nkind: Secret\nmetadata: {name: s}\nstringData: {password: hunter2}\n' },
];

const BUILT = CONTENTS.map((files) => manifestsOf(new Map(Object.entries(files).map(([k, v]) => [k, bytes(v)]))));

const path = fc.constantFrom(...PATHS);
const repository = fc.constantFrom('p', 'q');
const file = fc.constantFrom('app.yaml', 'sub/more.yaml', 'kustomization.yaml', 'Kustomization', 'stray.txt', '');

const step = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({
      ...{ type: fc.constant('publish' as const), repository, path },
      ...{ content: fc.nat(CONTENTS.length - 1), revision: fc.integer({ min: 1, max: 4 }), isMissing: fc.boolean() },
    }),
  },
  { weight: 2, arbitrary: fc.record({ type: fc.constant('withdraw' as const), repository, path }) },
  fc.record({ type: fc.constant('block' as const), repository, path }),
  { weight: 3, arbitrary: fc.record({ type: fc.constant('edit' as const), path, file, isRemoval: fc.boolean() }) },
  fc.record({ type: fc.constant('mark' as const), path, target: fc.constantFrom('edge', 'other'), repository }),
  fc.record({ type: fc.constant('unreadable' as const), repository, isUnreadable: fc.boolean() }),
  fc.record({ type: fc.constant('keep' as const), repository, path, isKept: fc.boolean() }),
  fc.record({ type: fc.constant('onRemoval' as const), value: fc.constantFrom('empty' as const, 'delete' as const) }),
  fc.record({ type: fc.constant('allow' as const), secrets: fc.boolean(), prune: fc.boolean() }),
  { weight: 8, arbitrary: fc.record({ type: fc.constant('deliver' as const), fails: fc.boolean() }) },
);

interface World {
  target: TargetSettings;
  readonly revisions: Map<string, DesiredRevision>;
  readonly branch: Map<string, PresentFile>;
  readonly unreadable: Set<string>;
  readonly kept: Set<string>;
}

function put(world: World, files: BranchFiles, full: string, data: Uint8Array | null): void {
  if (data === null) {
    world.branch.delete(full);
    files.delete(full);
    return;
  }
  const owner = readOwner(data);
  const present = owner === undefined ? { oid: blobIdOf(data) } : { oid: blobIdOf(data), owner };
  world.branch.set(full, present);
  files.set(full, present);
}

/** The manifests of a revision that are not in memory become available, as its caller loads them. */
function load(revision: DesiredRevision, loaded: Set<DesiredRevision>): void {
  loaded.add(revision);
}

function plain(result: Desired): unknown {
  return {
    ...{ ...result, edits: [...result.edits], missing: result.missing.map(packageKey) },
    refused: result.refused,
  };
}

test('property: following changes gives the same as computing everything', () => {
  fc.assert(
    fc.property(fc.array(step, { minLength: 1, maxLength: 60 }), (steps) => {
      const world: World = {
        ...{ revisions: new Map(), branch: new Map(), unreadable: new Set(), kept: new Set() },
        target: {
          ...{ name: 'edge', directory: `/${DIRECTORY}`, onRemoval: 'empty' },
          ...{ allowSecrets: false, allowOutOfBand: false, allowPrune: true },
        },
      };
      const files = new BranchFiles(DIRECTORY);
      const loaded = new Set<DesiredRevision>();
      let tree = new DesiredTree(world.target, files);
      for (const one of steps) {
        const key = 'repository' in one && 'path' in one ? packageKey({ ...one, package: one.path }) : '';
        if (one.type === 'publish') {
          const { content, isMissing } = one;
          const revision: DesiredRevision = {
            ...{ repository: one.repository, package: one.path, revision: one.revision, gates: [] },
            ...{ sourceCommit: `c${one.revision}`, sourceTree: `t${content}` },
            get built() {
              return isMissing && !loaded.has(revision) ? undefined : BUILT[content];
            },
          };
          world.revisions.set(key, revision);
        } else if (one.type === 'withdraw') world.revisions.delete(key);
        else if (one.type === 'block') {
          const refused = { reason: 'TrustLost', message: 'it does not count' } as const;
          const common = { repository: one.repository, package: one.path, revision: 1, gates: [] };
          world.revisions.set(key, { ...common, sourceCommit: '', sourceTree: '', built: { refused } });
        } else if (one.type === 'edit') {
          const full = [DIRECTORY, one.path, one.file].filter((part) => part !== '').join('/');
          put(world, files, full, one.isRemoval ? null : bytes('x: y\n'));
        } else if (one.type === 'mark') {
          const fields = JSON.stringify([one.target, one.repository, one.path, 1]);
          const mark = bytes(`# Written by Sluice; changes here are overwritten. ${fields}\n`);
          put(world, files, `${DIRECTORY}/${one.path}/kustomization.yaml`, mark);
        } else if (one.type === 'unreadable') {
          if (one.isUnreadable) world.unreadable.add(one.repository);
          else world.unreadable.delete(one.repository);
        } else if (one.type === 'keep') {
          if (one.isKept) world.kept.add(key);
          else world.kept.delete(key);
        } else if (one.type === 'onRemoval' || one.type === 'allow') {
          const changed =
            one.type === 'allow' ? { allowSecrets: one.secrets, allowPrune: one.prune } : { onRemoval: one.value };
          world.target = { ...world.target, ...changed };
          tree = new DesiredTree(world.target, files);
        } else {
          const { target, branch, unreadable, kept } = world;
          const revisions = [...world.revisions.values()];
          const fresh = desired(target, revisions.toReversed(), new Map([...branch].reverse()), unreadable, kept);
          const followed = runAtOnce(tree.update(revisions, unreadable, kept));
          expect(plain(followed)).toEqual(plain(fresh));
          for (const revision of followed.missing) load(revision, loaded);
          if (one.fails || followed.missing.length > 0) continue;
          for (const [full, data] of followed.edits) {
            if (data === null) branch.delete(full);
            else {
              const owner = readOwner(data);
              branch.set(full, owner === undefined ? { oid: blobIdOf(data) } : { oid: blobIdOf(data), owner });
            }
          }
          files.apply(followed.edits);
          expect(files.size).toBe(branch.size);
        }
      }
    }),
    { numRuns: runs(4000) },
  );
});
