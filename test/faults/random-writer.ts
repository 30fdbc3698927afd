// A process that does random work on one remote repository until its time is over, and reports the result of each operation.
// Then it waits for the end of its input, and reports the state.
// Arguments: name of the writer, folder of its data, address of the repository, seconds.
import { once } from 'node:events';
import { dirname, join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { isSluiceError, messageOf } from '../../src/foundation/sluice-error.ts';
import { isUnknownOutcome } from '../../src/git/errors.ts';
import type { PackageRevision } from '../../src/package/model/revision/package-revision.ts';
import type { RequestContext } from '../../src/resource/object/request-context.ts';
import { openStore } from '../support/open-store.ts';
import { folderTrust } from '../support/trust.ts';

const [writer = '', folder = '', url = '', seconds = '0'] = process.argv.slice(2);
const PACKAGES = 8;
const TASKS = 6;
const end = Date.now() + Number(seconds) * 1000;
let operations = 0;

const git = { timeouts: { push: 5000, fetch: 5000, listRemote: 5000 } };
// Both writers sign with one key, so that each counts what the other one wrote.
const trust = await folderTrust(folder, join(dirname(folder), 'statement-key'));
const store = await untilAnswered(() => openStore(url, folder, { git, trust }));
const repository = store.repository('packages');
await Promise.all([...Array.from({ length: TASKS }, work), keepUp()]);
say({ says: 'idle' });
// The other one may still be working; the final state is known when both have ended.
process.stdin.resume();
await once(process.stdin, 'end');
await untilAnswered(() => repository.sync());
const rows = [...repository.index.all()];
// A package on main names the head at which its folder was seen first, which differs from process to process.
const names = rows.map(({ name, uid, revision, refOid }) => `${name} ${uid} ${revision < 0 ? '' : refOid}`).sort();
say({ says: 'end', names });
await store.close();

async function work(): Promise<void> {
  while (Date.now() < end) {
    await one(`${writer}-${process.pid}-${operations++}`);
    await delay(Math.random() * 20);
  }
}

/** Reads the changes by the other writer. */
async function keepUp(): Promise<void> {
  while (Date.now() < end) {
    await delay(300);
    try {
      await repository.sync();
    } catch (error) {
      if (!isSluiceError(error)) throw error;
    }
  }
}

async function one(id: string): Promise<void> {
  const context: RequestContext = { actor: { name: id }, face: 'cli' };
  const name = `p${Math.floor(Math.random() * PACKAGES)}`;
  const rows = repository.index.ofPackage(name);
  const row = rows[Math.floor(Math.random() * rows.length)];
  const published = rows.find(({ lifecycle, revision }) => lifecycle === 'Published' && revision > 0);
  const isNew = row === undefined || (published !== undefined && Math.random() < 0.3);
  const operation = isNew ? create(name, id, published) : onRevision(row, id);
  if (operation === undefined) return;
  say({ says: 'begin', id, does: operation.does, of: row?.uid });
  try {
    const uid = await operation.run(context);
    say({ says: 'done', id, does: operation.does, uid });
  } catch (error) {
    if (!isSluiceError(error)) throw error;
    say({ says: isUnknownOutcome(error) ? 'unknown' : 'failed', id, code: error.code, message: messageOf(error) });
  }
}

interface Operation {
  readonly does: string;
  run(context: RequestContext): Promise<string | undefined>;
}

function create(name: string, id: string, source: PackageRevision | undefined): Operation {
  const from = source === undefined ? ({ type: 'init' } as const) : ({ type: 'copy', source: source.name } as const);
  const revision = { package: name, workspace: `w${id}`, source: from };
  return { does: 'create', run: async (context) => (await store.create('packages', revision, context)).uid };
}

function onRevision(row: PackageRevision, id: string): Operation | undefined {
  const step = (action: 'propose' | 'approve' | 'reject' | 'delete' | 'propose-deletion'): Operation => ({
    does: action,
    run: async (context) => (await store.update(row.name, { action }, context))?.uid ?? row.uid,
  });
  const lot = Math.random();
  switch (row.lifecycle) {
    case 'Draft':
      if (lot < 0.1) return step('delete');
      if (lot < 0.4) return step('propose');
      return {
        does: 'edit',
        run: async (context) => {
          const files = new Map([[`done-${id}.txt`, Buffer.from(`${id}\n`)]]);
          return (await store.change(row.name, { files }, context)).uid;
        },
      };
    case 'Proposed':
      return step(lot < 0.2 ? 'reject' : 'approve');
    case 'Published':
      // The package on main has no lifecycle of its own here.
      return row.revision < 1 || lot < 0.7 ? undefined : step('propose-deletion');
    case 'DeletionProposed':
      return row.revision < 1 ? undefined : step(lot < 0.3 ? 'reject' : 'delete');
  }
}

/** The remote fails now and then; the begin and the end of a writer must succeed. */
async function untilAnswered<Result>(run: () => Promise<Result>): Promise<Result> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await run();
    } catch (error) {
      if (!isSluiceError(error) || attempt === 50) throw error;
      await delay(200);
    }
  }
}

function say(line: object): void {
  process.stdout.write(`${JSON.stringify(line)}\n`);
}
