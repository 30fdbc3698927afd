import { cp, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import type { RevisionStore } from '../../src/package/store/revision-store.ts';
import { startGitServer } from '../support/git/git-server.ts';
import { openStore } from '../support/open-store.ts';
import { anna, type Scratch, scratchRepository } from '../support/scratch-repository.ts';
import { draft, outcomeOf } from '../support/shop.ts';

const NAME = 'packages.shop.v1';

type Transport = 'auto' | 'git';

interface Story {
  /** Creates the content of the backup. */
  readonly before: readonly Step[];
  /** Makes changes after it, which are lost. */
  readonly lost: readonly Step[];
  /** The first operations after the restore, without knowledge of it. */
  readonly next: Step;
  /** As the backup has it. */
  readonly lifecycle: string;
}

type Step = 'edit' | 'propose' | 'approve' | 'reject' | 'propose-deletion' | 'delete';

const REPROPOSED = ['reject', 'edit', 'propose'] as const;
const PROPOSED = { before: ['propose'], lifecycle: 'Proposed' } as const;
const DRAFT = { before: [], lifecycle: 'Draft' } as const;
const PUBLISHED = { before: ['propose', 'approve'], lifecycle: 'Published' } as const;

/** The steps that publish it from there. The record of a proposal in the backup may be older than a withdrawn one. */
const AGAIN: Readonly<Record<string, readonly Step[]>> & { readonly Proposed: readonly Step[] } = {
  Draft: ['propose', 'approve'],
  Proposed: ['reject', 'propose', 'approve'],
};

const STORIES: Readonly<Record<string, Story>> = {
  'an edit': { ...DRAFT, lost: ['edit'], next: 'edit' },
  'a proposal': { ...DRAFT, lost: ['edit'], next: 'propose' },
  'a deletion of a draft': { ...DRAFT, lost: ['edit'], next: 'delete' },
  'an approval of what is a draft again': { ...DRAFT, lost: ['propose'], next: 'approve' },
  'an approval of another proposal': { ...PROPOSED, lost: REPROPOSED, next: 'approve' },
  'a rejection of another proposal': { ...PROPOSED, lost: REPROPOSED, next: 'reject' },
  'a proposal to delete what is not published any more': {
    ...PROPOSED,
    lost: ['approve'],
    next: 'propose-deletion',
  },
  'a deletion whose proposal was lost': { ...PUBLISHED, lost: ['propose-deletion'], next: 'delete' },
};

describe.each(['auto', 'git'] as const)('a host that was put back to an older state (transport %s)', (transport) => {
  test.each(Object.keys(STORIES))('loses nothing by %s', async (title) => {
    const { before, lost, next, lifecycle } = STORIES[title] as Story;
    await using host = await startHost(transport);
    const { store, scratch } = host;
    await draft(store);
    for (const step of before) await take(store, step);
    await host.backUp();
    for (const step of lost) await take(store, step);
    await host.restore();
    const refs = await scratch.git('for-each-ref');
    expect(await outcomeOf(take(store, next))).toMatch(/^Conflict: /);
    expect(await scratch.git('for-each-ref')).toBe(refs);
    // The next reader gets the current state, as a new process does.
    const fresh = await host.connect('two');
    expect(store.get(NAME)).toEqual(fresh.get(NAME));
    expect(store.get(NAME).lifecycle).toBe(lifecycle);
    await fresh.close();
    for (const step of AGAIN[lifecycle] ?? []) await take(store, step);
    expect(store.get(NAME)).toMatchObject({ lifecycle: 'Published', revision: 1 });
    await host.expectWhole();
  });

  test('is followed by the next sync, and new work starts from there', async () => {
    await using host = await startHost(transport);
    const { store } = host;
    await draft(store);
    await take(store, 'propose');
    await host.backUp();
    await take(store, 'approve');
    await draft(store, 'web');
    await host.restore();
    await store.repository('packages').sync();
    expect(store.get(NAME).lifecycle).toBe('Proposed');
    expect(store.find('packages.web.v1')).toBeUndefined();
    await draft(store, 'web');
    for (const step of AGAIN.Proposed) await take(store, step);
    const fresh = await host.connect('two');
    expect(store.list()).toEqual(fresh.list());
    await fresh.close();
    await host.expectWhole();
  });

  test('accepts a draft based on commits that it lost, as a whole', async () => {
    await using host = await startHost(transport);
    const { store } = host;
    await draft(store);
    await take(store, 'propose');
    await host.backUp();
    await take(store, 'approve');
    await host.restore();
    // The main branch that it is based on is missing there.
    await draft(store, 'web');
    const fresh = await host.connect('two');
    await store.repository('packages').sync();
    expect(store.list()).toEqual(fresh.list());
    expect(store.get('packages.web.v1').lifecycle).toBe('Draft');
    expect(store.get(NAME).lifecycle).toBe('Proposed');
    await fresh.close();
    await host.expectWhole();
  });
});

let edits = 0;

async function take(store: RevisionStore, step: Step): Promise<void> {
  if (step !== 'edit') await store.update(NAME, { action: step }, anna);
  else await store.change(NAME, { files: new Map([['a.yaml', Buffer.from(`a: ${++edits}\n`)]]) }, anna);
}

interface Host extends AsyncDisposable {
  readonly scratch: Scratch;
  readonly store: RevisionStore;
  /** Another process. */
  connect(process: string): Promise<RevisionStore>;
  backUp(): Promise<void>;
  restore(): Promise<void>;
  expectWhole(): Promise<void>;
}

async function startHost(transport: Transport): Promise<Host> {
  const scratch = await scratchRepository();
  const server = await startGitServer({ root: scratch.folder });
  const backup = `${scratch.path}.backup`;
  const connect = (process: string) =>
    openStore(`${server.url}/packages.git`, join(scratch.folder, process), { git: { transport } });
  const store = await connect('one');
  return {
    ...{ scratch, store, connect },
    backUp: () => cp(scratch.path, backup, { recursive: true }),
    async restore() {
      await rm(scratch.path, { recursive: true });
      await cp(backup, scratch.path, { recursive: true });
    },
    async expectWhole() {
      expect(await scratch.git('fsck', '--strict', '--no-dangling')).toBe('');
    },
    async [Symbol.asyncDispose]() {
      await store.close();
      await server.close();
      await scratch[Symbol.asyncDispose]();
    },
  };
}
