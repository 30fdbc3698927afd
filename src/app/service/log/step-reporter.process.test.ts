import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { anna, type Scratch, scratchRepository } from '../../../../test/support/scratch-repository.ts';
import { MAIN_LAYOUT, newServerTrust, newSigner, trustOf } from '../../../../test/support/trust.ts';
import { initRepository } from '../../../git/open/open-repository.ts';
import type { ServerTrust } from '../../../package/store/opening/open-repository-trust.ts';
import type { PackageRepository } from '../../../package/store/package-repository.ts';
import type { RevisionStore } from '../../../package/store/revision-store.ts';
import { eventOfStep } from './event-of-step.ts';
import { narrateChanges } from './narrate-changes.ts';
import { type ReportedSteps, reportsStep } from './step-reporter.ts';

const DRAFT = 'packages.shop.v1';

interface Process {
  readonly store: RevisionStore;
  readonly repository: PackageRepository;
  /** The Events that it has emitted, and no more after they were read. */
  readonly events: () => string[];
  /** Runs once, after the next fetch and before its refs are evaluated. */
  afterFetch: (() => Promise<unknown>) | undefined;
}

let scratch: Scratch;
beforeEach(async () => {
  scratch = await scratchRepository();
});
afterEach(() => scratch[Symbol.asyncDispose]());

/** Two installations, whose keys each other trusts. */
function installations(): [ServerTrust, ServerTrust] {
  const [own, other] = [newServerTrust(newSigner()), newServerTrust(newSigner())];
  const trusts = (server: ServerTrust, { signer }: ServerTrust) => {
    const { fingerprint, publicKey } = signer();
    server.ledger.addKey({ fingerprint, publicKey, comment: '', origin: 'added', addedAt: '2026-01-01T00:00:00Z' });
  };
  trusts(own, other);
  trusts(other, own);
  return [own, other];
}

async function start(server: ServerTrust, reported: ReportedSteps): Promise<Process> {
  const git = await initRepository(join(scratch.folder, `${reported}-${Math.random()}.git`));
  const fetch = git.fetch.bind(git);
  const remote = { url: `file://${scratch.path}` };
  await fetch(remote, { refspecs: ['+refs/*:refs/*'], prune: true });
  const { trust, isFirstLook } = await trustOf(git, scratch.path, MAIN_LAYOUT, server, remote, scratch.clock);
  const { store, repository } = await scratch.open({ git, remote, trust, isFirstLook });
  let emitted: string[] = [];
  const process: Process = {
    ...{ store, repository, afterFetch: undefined },
    events: () => {
      const events = emitted;
      emitted = [];
      return events;
    },
  };
  git.fetch = async (...given) => {
    const fetched = await fetch(...given);
    const next = process.afterFetch;
    process.afterFetch = undefined;
    await next?.();
    return fetched;
  };
  store.subscribe((changes) => {
    for (const entry of narrateChanges(changes, 0)) {
      const event = eventOfStep(entry);
      const revision = store.find(`default/${entry.subject}`);
      if (event === undefined || revision === undefined) continue;
      if (reportsStep(reported, entry, revision, repository.trust)) emitted.push(`${event.reason}: ${event.message}`);
    }
  });
  return process;
}

const create = ({ store }: Process) =>
  store.create('packages', { package: 'shop', workspace: 'v1', source: { type: 'init' } }, anna);
const step = ({ store }: Process, action: 'propose' | 'reject' | 'approve' | 'propose-deletion' | 'undo-deletion') =>
  store.update(DRAFT, { action }, anna);

test('each step is an Event of the process that wrote it', async () => {
  const [own] = installations();
  const [api, controllers] = [await start(own, 'own'), await start(own, 'own-and-foreign')];
  await create(api);
  await controllers.repository.sync();
  for (const [writer, reader] of [
    [api, controllers],
    [controllers, api],
  ] as const) {
    await step(writer, 'propose');
    await reader.repository.sync();
    await step(writer, 'reject');
    await reader.repository.sync();
    expect([writer.events(), reader.events()]).toEqual([
      ['Proposed: Draft → Proposed, by anna', 'Rejected: Proposed → Draft, by anna'],
      [],
    ]);
  }
  await step(api, 'propose');
  await step(api, 'approve');
  await controllers.repository.sync();
  await step(api, 'propose-deletion');
  await controllers.repository.sync();
  await step(controllers, 'undo-deletion');
  await api.repository.sync();
  expect(api.events()).toEqual([
    'Proposed: Draft → Proposed, by anna',
    'Approved: Proposed → Published v1, by anna',
    'DeletionProposed: Published → DeletionProposed, by anna',
  ]);
  expect(controllers.events()).toEqual(['DeletionRejected: DeletionProposed → Published v1, by anna']);
});

test('what a push or another installation does is an Event of the controllers, and of a process that is alone', async () => {
  const [own, other] = installations();
  const processes = [await start(own, 'own'), await start(own, 'own-and-foreign'), await start(own, 'all')];
  const foreign = await start(other, 'all');
  await create(foreign);
  const events = async () => {
    for (const { repository } of processes) await repository.sync();
    return processes.map((one) => one.events());
  };
  expect(await events()).toEqual([[], [], []]);
  await step(foreign, 'propose');
  const proposed = ['Proposed: Draft → Proposed, by anna'];
  expect(await events()).toEqual([[], proposed, proposed]);
  await step(foreign, 'approve');
  const approved = ['Approved: Proposed → Published v1, by anna'];
  expect(await events()).toEqual([[], approved, approved]);
  await scratch.git('update-ref', 'refs/heads/drafts/shop/v2', 'refs/heads/main');
  await events();
  await scratch.git('branch', '-m', 'drafts/shop/v2', 'proposed/shop/v2');
  const pushed = ['Proposed: Draft → Proposed, by push'];
  expect(await events()).toEqual([[], pushed, pushed]);
});

test('of a step whose record is not the last one any more the actor is not known, and no push is reported', async () => {
  const [own] = installations();
  const [api, controllers] = [await start(own, 'own'), await start(own, 'own-and-foreign')];
  await create(api);
  await controllers.repository.sync();
  await step(api, 'propose');
  controllers.afterFetch = () => api.store.change(DRAFT, { metadata: { labels: { a: 'b' } } }, anna);
  await controllers.repository.sync();
  expect(controllers.repository.index.get(DRAFT)?.recordDistrust?.reason).toBe('RolledBack');
  await controllers.repository.sync();
  expect(controllers.repository.index.get(DRAFT)).toMatchObject({ lifecycle: 'Proposed', recordDistrust: undefined });
  expect(controllers.events()).toEqual([]);
});
