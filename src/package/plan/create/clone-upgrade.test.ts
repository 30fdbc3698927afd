import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { anna, commitFiles, type Scratch, scratchRepository } from '../../../../test/support/scratch-repository.ts';
import { outcomeOf, publish } from '../../../../test/support/shop.ts';
import { MAIN_LAYOUT, trustOf } from '../../../../test/support/trust.ts';
import { initRepository } from '../../../git/open/open-repository.ts';
import { DEFAULT_POLICY } from '../../model/policy/policy.ts';
import { PackageRepository } from '../../store/package-repository.ts';
import type { RevisionStore } from '../../store/revision-store.ts';
import type { RevisionSource, UpdateStrategy } from '../../upstream/revision-source.ts';

const KPTFILE = `apiVersion: kpt.dev/v1
kind: Kptfile
metadata:
  name: upf # as upstream calls it
info:
  description: a user plane
  readinessGates:
    - conditionType: tested
status:
  conditions:
    - type: tested
      status: "True"
`;

function deployment(image: string, replicas = 1): string {
  return `apiVersion: apps/v1
kind: Deployment
metadata:
  name: upf
spec:
  replicas: ${replicas}
  template:
    spec:
      containers:
        - name: upf
          image: ${image} # the release
`;
}

interface World extends AsyncDisposable {
  readonly scratch: Scratch;
  readonly store: RevisionStore;
  /** A published revision of a package in the repository `packages`. */
  blueprint(workspace: string, files: Readonly<Record<string, string>>): Promise<string>;
  create(name: `${string}/${string}/${string}`, source: RevisionSource): Promise<string>;
  text(name: string, path: string): Promise<string>;
}

/** Blueprints in `packages`, and an empty deployment repository `edge`. */
async function world(): Promise<World> {
  const scratch = await scratchRepository();
  const { store } = await scratch.open();
  const git = await initRepository(join(scratch.folder, 'edge.git'));
  await commitFiles(git, { 'README.md': 'edge\n' }, scratch.clock.now());
  await store.add(
    await PackageRepository.open({
      name: 'edge',
      namespace: 'default',
      deployment: true,
      url: `${join(scratch.folder, 'edge.git')}`,
      ...(await trustOf(git, join(scratch.folder, 'edge.git'))),
      layout: MAIN_LAYOUT,
      git,
      clock: scratch.clock,
      policyFor: () => DEFAULT_POLICY,
      dependentsOf: (revision) => store.dependentsOf(revision),
      onChange: (changes) => store.announce(changes),
    }),
  );
  const create: World['create'] = async (name, source) => {
    const [repository = '', path = '', workspace = ''] = name.split('/');
    return (await store.create(repository, { package: path, workspace, source }, anna)).name;
  };
  return {
    scratch,
    store,
    create,
    blueprint: async (workspace, texts) => {
      const files = new Map(Object.entries(texts).map(([path, text]) => [path, Buffer.from(text)]));
      const first = store.list({ repository: 'packages', package: 'upf' }).find(({ revision }) => revision > 0);
      if (first === undefined) {
        const name = await create(`packages/upf/${workspace}`, { type: 'init', files });
        await publish(store, name);
        return name;
      }
      const name = await create(`packages/upf/${workspace}`, { type: 'copy', source: first.name });
      const gone = [...(await store.content(name)).files.keys()].filter(
        (path) => path !== 'Kptfile' && !files.has(path),
      );
      const changed = new Map<string, Uint8Array | null>([...gone.map((path) => [path, null] as const), ...files]);
      await store.change(name, { files: changed, conditions: [{ type: 'tested', status: 'True' }] }, anna);
      await publish(store, name);
      return name;
    },
    text: async (name, path) => (await store.content(name)).files.get(path)?.toString('utf8') ?? '',
    [Symbol.asyncDispose]: () => scratch[Symbol.asyncDispose](),
  };
}

describe('a clone', () => {
  test('has the files of its upstream, its own name, and a reference to the upstream', async () => {
    await using w = await world();
    const v1 = await w.blueprint('v1', { Kptfile: KPTFILE, 'upf.yaml': deployment('upf:1'), 'run.sh': '#!/bin/sh\n' });
    const name = await w.create('edge/edge-upf/v1', { type: 'clone', upstream: { revision: v1 } });
    expect(name).toBe('edge.edge-upf.v1');
    const { commit, kptfile } = w.store.get(v1);
    const git = { repo: w.scratch.path, directory: 'upf', ref: 'upf/v1' };
    expect(w.store.get(name)).toMatchObject({
      lifecycle: 'Draft',
      kptfile: {
        metadata: { name: 'edge-upf' },
        upstream: { type: 'git', git },
        upstreamLock: { type: 'git', git: { ...git, commit } },
        info: kptfile?.info,
      },
      record: { task: { type: 'clone', clone: { upstreamRef: { upstreamRef: { name: v1 } } } } },
    });
    expect(await w.text(name, 'Kptfile')).toContain('  name: edge-upf # as upstream calls it\n');
    expect(await w.text(name, 'package-context.yaml')).toContain('  name: edge-upf\n');
    expect(await w.text(v1, 'package-context.yaml')).toContain('  name: example\n');
    expect(await w.text(name, 'upf.yaml')).toBe(
      deployment('upf:1').replace(
        'metadata:',
        'metadata: # kpt-merge: /upf\n  annotations:\n    internal.kpt.dev/upstream-identifier: apps|Deployment|default|upf',
      ),
    );
    expect(await w.text(name, 'Kptfile')).toContain('upstream-identifier: kpt.dev|Kptfile|default|edge-upf\n');
    expect(await w.text(name, 'run.sh')).toBe('#!/bin/sh\n');
    expect(w.store.get(name).tip.subject).toBe('Creating new revision by cloning');
    expect(w.store.dependentsOf(w.store.get(v1))).toEqual([name]);
  });

  test('carries conditions as texts, which open no gate', async () => {
    await using w = await world();
    const v1 = await w.blueprint('v1', { Kptfile: KPTFILE });
    for (const place of ['edge/upf/v1', 'packages/other/v1'] as const) {
      const name = await w.create(place, { type: 'clone', upstream: { revision: v1 } });
      expect(await w.text(name, 'Kptfile')).toContain('type: tested\n      status: "True"');
      const { gates } = await w.store.evaluate(name);
      expect(gates.map(({ state }) => state)).toEqual([place.startsWith('edge') ? 'Unproven' : 'Stale']);
      expect(await outcomeOf(w.store.update(name, { action: 'propose' }, anna))).toMatch(/^Refused: .*tested/);
    }
  });

  test('does not copy the requests for automatic steps of its upstream, and an upgrade merges none', async () => {
    await using w = await world();
    const requests = ['config.porch.kpt.dev/auto-lifecycle-mgmt: "true"', 'approval.nephio.org/policy: initial'];
    const annotated = (...lines: string[]) =>
      KPTFILE.replace('info:', `  annotations:\n${lines.map((line) => `    ${line}\n`).join('')}info:`);
    const v1 = await w.blueprint('v1', { Kptfile: annotated(...requests, 'team: a # kept') });
    const warnings: string[] = [];
    const source: RevisionSource = { type: 'clone', upstream: { revision: v1 } };
    const warn = (text: string) => void warnings.push(text);
    const { name } = await w.store.create('edge', { package: 'upf', workspace: 'v1', source }, { ...anna, warn });
    const text = await w.text(name, 'Kptfile');
    expect(text).not.toMatch(/auto-lifecycle|approval\.nephio/);
    expect(text).toContain('    team: a # kept\n');
    expect(warnings).toEqual([
      expect.stringMatching(/auto-lifecycle-mgmt and approval\.nephio\.org\/policy in .* was not copied/),
    ]);
    await w.store.change(name, { conditions: [{ type: 'tested', status: 'True' }] }, anna);
    await publish(w.store, name);
    const v2 = await w.blueprint('v2', {
      Kptfile: annotated('approval.nephio.org/policy: always', 'team: b'),
      'new.txt': 'new\n',
    });
    for (const strategy of ['resource-merge', 'fast-forward', 'copy-merge', 'force-delete-replace'] as const) {
      const upgrade = { oldUpstream: v1, newUpstream: v2, local: name, strategy };
      const next = await w.create(`edge/upf/${strategy}`, { type: 'upgrade', ...upgrade });
      const upgraded = await w.text(next, 'Kptfile');
      expect([strategy, upgraded]).toEqual([strategy, expect.stringContaining('team: b')]);
      expect(upgraded).not.toContain('approval.nephio');
    }
  });

  test('can be made of a draft, but not of the main branch, nor twice', async () => {
    await using w = await world();
    const v1 = await w.blueprint('v1', { Kptfile: KPTFILE });
    const draft = await w.create('packages/upf/v2', { type: 'copy', source: v1 });
    await w.create('edge/a/v1', { type: 'clone', upstream: { revision: draft } });
    expect(w.store.get('edge.a.v1').kptfile?.upstream?.git?.ref).toBe('drafts/upf/v2');
    const outcome = (name: `${string}/${string}/${string}`, revision: string) =>
      outcomeOf(w.create(name, { type: 'clone', upstream: { revision } }));
    expect(await outcome('edge/b/v1', 'packages.upf.main')).toBe(
      'Refused: upstream revision may not be the placeholder package revision packages/packages.upf.main; clone a published revision',
    );
    expect(await outcome('edge/a/v2', v1)).toBe(
      'AlreadyExists: `clone` cannot create a new revision for package "a" that already exists in repo "edge"; make subsequent revisions using `copy`',
    );
    expect(await outcome('edge/b/v1', 'packages.nothing.v1')).toMatch(
      /^NotFound: package revision "packages.nothing.v1" not found/,
    );
    const address = { repo: w.scratch.path, ref: 'main', directory: 'upf' };
    expect(await outcomeOf(w.create('edge/b/v1', { type: 'clone', upstream: { git: address } }))).toMatch(
      /^Unsupported: /,
    );
  });
});

describe('an upgrade', () => {
  async function cloned(w: World): Promise<{ v1: string; v2: string; local: string }> {
    const v1 = await w.blueprint('v1', {
      Kptfile: KPTFILE.replace(/info:\n.*\n.*\n.*\n(?=status)/, '').replace(/status:\n[\s\S]*/, ''),
      'upf.yaml': deployment('upf:1'),
      'notes.txt': 'one\n',
      'old.yaml': 'apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: old\n',
    });
    const local = await w.create('edge/edge-upf/v1', { type: 'clone', upstream: { revision: v1 } });
    const v2 = await w.blueprint('v2', {
      'upf.yaml': deployment('upf:2'),
      'notes.txt': 'two\n',
      'new.yaml': 'apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: new\n',
    });
    return { v1, v2, local };
  }

  test('merges upstream changes and keeps local changes', async () => {
    await using w = await world();
    const { v1, v2, local } = await cloned(w);
    const mine = (await w.text(local, 'upf.yaml'))
      .replace('replicas: 1', 'replicas: 3')
      .replace('name: upf\n', 'name: edge\n')
      .replace('upf:1', 'upf:own');
    const own = 'apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: own\n';
    const files = new Map([
      ['upf.yaml', Buffer.from(mine)],
      ['own.yaml', Buffer.from(own)],
      ['notes.txt', Buffer.from('mine\n')],
    ]);
    await w.store.change(local, { files }, anna);
    await publish(w.store, local);
    const warnings: string[] = [];
    const source = { type: 'upgrade', oldUpstream: v1, newUpstream: v2, local } as const;
    const context = { ...anna, warn: (message: string) => warnings.push(message) };
    const { name } = await w.store.create('edge', { package: 'edge-upf', workspace: 'v2', source }, context);
    expect(warnings).toEqual([
      'changed upstream, and kept as they were changed locally: notes.txt',
      'changed on both sides, and overwritten by upstream: Deployment/upf spec.template.spec.containers[upf].image (was upf:own) in upf.yaml',
    ]);
    expect(await w.text(name, 'upf.yaml')).toBe(mine.replace('upf:own', 'upf:2'));
    expect(await w.text(name, 'own.yaml')).toContain('name: own');
    expect(await w.text(name, 'notes.txt')).toBe('mine\n');
    expect(await w.text(name, 'new.yaml')).toContain('metadata: # kpt-merge: /new');
    expect((await w.store.content(name)).files.has('old.yaml')).toBe(false);
    expect(await w.text(name, 'package-context.yaml')).toContain('name: edge-upf');
    expect(w.store.get(name)).toMatchObject({
      lifecycle: 'Draft',
      tip: { subject: 'Upgrading revision' },
      kptfile: {
        metadata: { name: 'edge-upf' },
        upstream: { git: { ref: 'upf/v2' } },
        upstreamLock: { git: { ref: 'upf/v2', commit: w.store.get(v2).commit } },
      },
      record: {
        source: { kind: 'upgrade', name: local },
        task: {
          type: 'upgrade',
          upgrade: {
            oldUpstreamRef: { name: v1 },
            newUpstreamRef: { name: v2 },
            localPackageRevisionRef: { name: local },
            strategy: 'resource-merge',
          },
        },
      },
    });
    expect(w.store.dependentsOf(w.store.get(v2))).toEqual([name]);
  });

  test('by the other strategies', async () => {
    await using w = await world();
    const { v1, v2, local } = await cloned(w);
    await publish(w.store, local);
    const upgrade = (workspace: string, strategy: UpdateStrategy, from = local) =>
      w.create(`edge/edge-upf/${workspace}`, {
        type: 'upgrade',
        oldUpstream: v1,
        newUpstream: v2,
        local: from,
        strategy,
      });
    const forward = await upgrade('forward', 'fast-forward');
    expect(await w.text(forward, 'upf.yaml')).toContain('upf:2');
    const changed = await w.create('edge/edge-upf/changed', { type: 'copy', source: local });
    const files = new Map([
      ['upf.yaml', Buffer.from(deployment('mine:1'))],
      ['own.txt', Buffer.from('own\n')],
    ]);
    await w.store.change(changed, { files }, anna);
    await publish(w.store, changed);
    expect(await outcomeOf(upgrade('refused', 'fast-forward', changed))).toBe(
      'Refused: local package files have been modified: own.txt, upf.yaml; the strategy fast-forward overwrites no local changes; choose another strategy with --strategy',
    );
    const replaced = await upgrade('replaced', 'force-delete-replace', changed);
    expect([...(await w.store.content(replaced)).files.keys()]).toEqual([
      'Kptfile',
      'new.yaml',
      'notes.txt',
      'package-context.yaml',
      'upf.yaml',
    ]);
    const copied = await upgrade('copied', 'copy-merge', changed);
    expect(await w.text(copied, 'upf.yaml')).toContain('upf:2');
    expect([...(await w.store.content(copied)).files.keys()]).toEqual([
      'Kptfile',
      'new.yaml',
      'notes.txt',
      'own.txt',
      'package-context.yaml',
      'upf.yaml',
    ]);
    for (const name of [forward, replaced, copied]) {
      expect(w.store.get(name).kptfile).toMatchObject({
        metadata: { name: 'edge-upf' },
        upstream: { git: { ref: 'upf/v2' } },
      });
    }
  });

  test('requires published revisions of one package', async () => {
    await using w = await world();
    const { v1, v2, local } = await cloned(w);
    const upgrade = (oldUpstream: string, newUpstream: string, from: string) =>
      outcomeOf(w.create('edge/edge-upf/v2', { type: 'upgrade', oldUpstream, newUpstream, local: from }));
    expect(await upgrade(v1, v2, local)).toBe(
      `Refused: all source PackageRevisions of upgrade task must be published, "${local}" is not`,
    );
    await publish(w.store, local);
    expect(await upgrade(v1, 'packages.upf.main', local)).toBe(
      'Refused: target upstream revision may not be the placeholder package revision packages/packages.upf.main',
    );
    expect(await upgrade('packages.upf.main', v2, local)).toMatch(/^Refused: current upstream revision may not be/);
    expect(await upgrade(v1, v2, v1)).toBe(
      'InvalidInput: local package revision must be from same package edge/edge-upf (got: packages/upf)',
    );
    expect(await upgrade(v1, 'packages.upf.v9', local)).toMatch(/^NotFound: /);
    expect(w.store.find('edge.edge-upf.v2')).toBeUndefined();
  });
});
