import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { DeliveredPackage } from '../../src/delivery/delivered/delivered-package.ts';
import type { FolderOwner } from '../../src/delivery/tree/kustomization.ts';
import { ChangedPackages } from '../../src/package/index/state/changed-packages.ts';
import type { PackageRevision } from '../../src/package/model/revision/package-revision.ts';
import type { PackageRepository } from '../../src/package/store/package-repository.ts';
import type { Repository } from '../../src/resource/kinds/porch/repository.ts';
import { type DeliveryTarget, deliveryTargetKind } from '../../src/resource/kinds/sluice/delivery/delivery-target.ts';
import { runs } from '../../test/support/runs.ts';
import { type SelectedPackage, SelectedPackages } from './selected-packages.ts';

/*
 * Random histories of an index, a branch and a target: the selection that follows them is the one that is computed from everything, and
 * packages that did not change keep their objects.
 */

const PACKAGES = ['a', 'a/b', 'c'] as const;

class Index {
  readonly name: string;
  readonly #rows = new Map<string, PackageRevision>();
  readonly #changed = new ChangedPackages();
  readonly #marks = new Map<string, { readonly digest: string; readonly sequence: number }>();
  readonly #raised: { readonly repository: string; readonly package: string; readonly workspace: string }[] = [];
  /** As a ledger that was too busy to know which marks were raised. */
  forgetsScopes = false;

  constructor(name: string) {
    this.name = name;
  }

  raise(path: string): void {
    this.#marks.set(path, { digest: 'd', sequence: 1 });
    this.#raised.push({ repository: this.name, package: path, workspace: 'w' });
  }

  set(path: string, number: number, row: PackageRevision | undefined): void {
    const key = `${path}.${number}`;
    if (row !== undefined) this.#rows.set(key, row);
    else if (!this.#rows.delete(key)) return;
    this.#changed.note(path);
  }

  /** As after more changes than an index remembers. */
  forgetChanges(): void {
    for (let number = 0; number <= 2_000; number += 1) this.#changed.note(`other-${number}`);
  }

  get repository(): PackageRepository {
    const rows = this.#rows;
    const changed = this.#changed;
    const index = {
      changedSince: (version: number | undefined) => changed.since(version),
      all: () => rows.values(),
      ofPackage: (path: string) => [...rows.values()].filter(({ key }) => key.package === path),
      ref: () => undefined,
    };
    const trust = {
      repository: this.name,
      mark: ({ package: path }: { readonly package: string }) => this.#marks.get(path),
      raisedSince: (version: number) => ({
        version: this.#raised.length,
        scopes: this.forgetsScopes ? undefined : this.#raised.slice(version),
      }),
    };
    const layout = { branch: 'main', directory: '', recordPrefix: 'refs/' };
    const made = { repository: this.name, namespace: 'default', index, trust, layout, git: {} };
    return made as unknown as PackageRepository;
  }
}

const name = fc.record({ repository: fc.constantFrom('p', 'q'), package: fc.constantFrom(...PACKAGES) });
const revision = fc.integer({ min: 1, max: 3 });

const step = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({
      ...{ type: fc.constant('row' as const), name, revision, site: fc.constantFrom('east', 'west') },
      trust: fc.constantFrom('trusted', 'trusted', 'Unverified', 'RevokedKey', 'Draft', 'RecordLost'),
    }),
  },
  fc.record({ type: fc.constant('vanish' as const), name, revision }),
  fc.record({ type: fc.constant('forget' as const) }),
  fc.record({ type: fc.constant('folder' as const), name, revision: fc.option(revision, { nil: undefined }) }),
  fc.record({ type: fc.constant('noFolder' as const), name }),
  fc.record({ type: fc.constant('record' as const), name, revision, commit: fc.constantFrom('', 'c1') }),
  fc.record({ type: fc.constant('noRecord' as const), name }),
  fc.record({ type: fc.constant('mark' as const), name, forgetsScopes: fc.boolean() }),
  fc.record({ type: fc.constant('pin' as const), name, revision: fc.option(revision, { nil: undefined }) }),
  fc.record({ type: fc.constant('rollback' as const), name, to: fc.option(revision, { nil: undefined }) }),
  fc.record({
    type: fc.constant('selector' as const),
    selector: fc.constantFrom(
      {},
      { packages: ['a', 'c'] },
      { packageSelector: { matchLabels: { site: 'east' } } },
      { repositorySelector: { matchLabels: { tier: 'edge' } } },
    ),
  }),
  fc.record({ type: fc.constant('labels' as const), repository: fc.constantFrom('p', 'q'), isEdge: fc.boolean() }),
  fc.record({ type: fc.constant('outOfBand' as const), isAllowed: fc.boolean() }),
  fc.record({ type: fc.constant('unready' as const), isThere: fc.boolean() }),
);

function row(repository: string, path: string, number: number, trust: string, site: string): PackageRevision {
  const isCounted = trust === 'trusted' || trust === 'Draft' || trust === 'RecordLost';
  const made = {
    ...{ key: { repository, package: path, workspace: `w${number}` }, path, namespace: 'default' },
    ...{ revision: trust === 'Draft' ? 0 : number, lifecycle: trust === 'Draft' ? 'Draft' : 'Published' },
    ...{ commit: `c${number}`, kptfile: { metadata: { labels: { site } } }, tip: { facts: {} } },
    ...(isCounted ? {} : { outOfBand: { reason: trust, message: 'it does not count' } }),
    ...(trust === 'RecordLost' ? { recordDistrust: { reason: 'Unsigned', message: 'none' } } : {}),
  };
  return made as unknown as PackageRevision;
}

function selectionOf(evaluated: Iterable<SelectedPackage>): unknown {
  const selection = new Map<string, unknown>();
  for (const one of evaluated) {
    if (one.isDropped || (one.chosen === undefined && one.blocked === undefined)) continue;
    selection.set(one.key, { row: one.chosen?.row, blocked: one.blocked });
  }
  return [...selection].sort(([a], [b]) => (a < b ? -1 : 1));
}

test('property: following changes selects the same as looking at everything', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 1, maxLength: 40 }), async (steps) => {
      const indexes = { p: new Index('p'), q: new Index('q') };
      const opened = { p: indexes.p.repository, q: indexes.q.repository };
      const edge = { p: false, q: true };
      const folders = new Map<string, FolderOwner>();
      const records = new Map<string, DeliveredPackage>();
      let spec: DeliveryTarget['spec'] = deliveryTargetKind.complete({
        metadata: { name: 'edge' },
        spec: { selector: {}, git: { repo: 'file:///x.git' } },
      }).spec;
      let rollbacks: NonNullable<DeliveryTarget['status']>['rollbacks'];
      let isThere = true;
      const followed = new SelectedPackages();
      const known = new Set<SelectedPackage>();
      for (const one of steps) {
        const { repository = 'p', package: path = 'a' } = 'name' in one ? one.name : {};
        const key = `${repository}/${path}`;
        const index = indexes[repository];
        if (one.type === 'row') index.set(path, one.revision, row(repository, path, one.revision, one.trust, one.site));
        else if (one.type === 'vanish') index.set(path, one.revision, undefined);
        else if (one.type === 'forget') index.forgetChanges();
        else if (one.type === 'folder') {
          const owner = { target: 'edge', repository, package: path };
          folders.set(key, one.revision === undefined ? owner : { ...owner, revision: one.revision });
        } else if (one.type === 'noFolder') folders.delete(key);
        else if (one.type === 'record')
          records.set(key, { repository, package: path, revision: one.revision, commit: one.commit, tree: '' });
        else if (one.type === 'noRecord') records.delete(key);
        else if (one.type === 'mark') {
          index.raise(path);
          index.forgetsScopes = one.forgetsScopes;
        } else if (one.type === 'pin')
          spec = {
            ...spec,
            pins: one.revision === undefined ? [] : [{ repository, package: path, revision: one.revision }],
          };
        else if (one.type === 'rollback') {
          const back = { repository, package: path, from: 3, time: '2026-01-01T00:00:00Z', reason: 'Degraded' };
          rollbacks = one.to === undefined ? undefined : [{ ...back, to: one.to }];
        } else if (one.type === 'selector') spec = { ...spec, selector: one.selector };
        else if (one.type === 'labels') edge[one.repository] = one.isEdge;
        else if (one.type === 'outOfBand') spec = { ...spec, allowOutOfBand: one.isAllowed };
        else isThere = one.isThere;

        const objects = (['p', 'q'] as const).map((each) => ({
          metadata: { name: each, labels: edge[each] ? { tier: 'edge' } : {} },
        })) as unknown as Repository[];
        const status = rollbacks === undefined ? {} : { rollbacks };
        const input = {
          target: { spec, status } as unknown as DeliveryTarget,
          repositories: isThere ? [opened.p, opened.q] : [opened.p],
          objects,
          folders: [...folders.values()],
          known: [...records.values()],
        };
        for (const each of await followed.update(input)) known.add(each);
        const fresh = new SelectedPackages();
        const all = await fresh.update(input);
        expect(selectionOf(known)).toEqual(selectionOf(all));
        expect(followed.endedRollbacks(input.target)).toEqual(fresh.endedRollbacks(input.target));
        // Without a change only packages are evaluated whose delivered revision is missing.
        for (const { folder, recorded } of indexes.p.forgetsScopes || indexes.q.forgetsScopes
          ? []
          : await followed.update(input))
          expect(folder ?? recorded).toBeDefined();
      }
    }),
    { numRuns: runs(1000) },
  );
});
