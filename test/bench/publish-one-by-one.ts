import fs from 'node:fs';
import { join } from 'node:path';
import { inflateSync } from 'node:zlib';
import type { GitRepository, RefUpdate } from '../../src/git/git-repository.ts';
import { openRepository } from '../../src/git/open/open-repository.ts';
import type { RequestContext } from '../../src/resource/object/request-context.ts';
import { openBench } from './open-bench.ts';
import { looseObjects, type RecordedTransaction, replay } from './replay.ts';
import { kptfile, manifest } from './synthetic-repository.ts';

export const context: RequestContext = { actor: { name: 'bench' }, face: 'cli' };
/** Lifecycles before the measurement, since a long-running server has compiled its code. */
const WARM_UP = 20;

/**
 * Draft to Published one by one in a copy of a repository; then the same objects and refs replayed into another. Milliseconds each.
 * The copies are made at `<copies>-ours` and `<copies>-replayed`.
 */
export async function publishOneByOne(
  path: string,
  copies: string,
  count: number,
): Promise<{ readonly elapsed: number; readonly floor: number }> {
  const [ours, replayed] = [`${copies}-ours`, `${copies}-replayed`];
  fs.cpSync(path, ours, { recursive: true });
  fs.cpSync(path, replayed, { recursive: true });
  const recorder = recordTransactions(await openRepository(ours));
  let elapsed = 0;
  const repository = await openBench(ours, undefined, recorder.git);
  for (let number = -WARM_UP; number < count; number++) {
    if (number === 0) {
      elapsed = 0;
      recorder.restart();
    }
    const name = number < 0 ? `warm-up${number}` : `new-${number}`;
    const files = newPackage(number);
    const started = performance.now();
    const draft = await repository.writes.create(
      { package: name, workspace: 'v1', source: { type: 'init', files } },
      context,
    );
    await repository.writes.update(draft.name, { action: 'propose' }, context);
    await repository.writes.update(draft.name, { action: 'approve' }, context);
    elapsed += performance.now() - started;
  }
  elapsed -= recorder.overhead();
  await repository.close();
  await replay(replayed, recorder.warmUp);
  const floor = await replay(replayed, recorder.transactions);
  return { elapsed: elapsed / count, floor: floor / count };
}

/** Eleven files, and no gate that prevents publication. */
export function newPackage(number: number): Map<string, Buffer> {
  const files = new Map([['Kptfile', Buffer.from(kptfile(number, 1).replace(/ {2}readinessGates:\n.*\n/, ''))]]);
  for (let part = 0; part < 10; part++) files.set(`config-${part}.yaml`, Buffer.from(manifest(number, part, 1)));
  return files;
}

/** Records the content of each transaction. Reading the object folder is not part of the job and is subtracted from the time. */
function recordTransactions(inner: GitRepository) {
  const transactions: RecordedTransaction[] = [];
  let warmUp: readonly RecordedTransaction[] = [];
  let known = looseObjects(inner.path);
  let spent = 0;
  const transaction = async (updates: readonly RefUpdate[]) => {
    await inner.transaction(updates);
    const started = performance.now();
    const now = looseObjects(inner.path);
    const objects = new Map<string, Buffer>();
    for (const name of now) {
      if (!known.has(name)) objects.set(name, inflateSync(fs.readFileSync(join(inner.path, 'objects', name))));
    }
    known = now;
    transactions.push({ objects, updates });
    spent += performance.now() - started;
  };
  const recording = new Proxy(inner, {
    get(target, property) {
      if (property === 'transaction') return transaction;
      const value = Reflect.get(target, property, target) as unknown;
      return typeof value === 'function' ? value.bind(target) : value;
    },
  });
  return {
    git: recording,
    transactions,
    get warmUp() {
      return warmUp;
    },
    /** Discards the results of the warm-up. */
    restart: () => {
      warmUp = transactions.splice(0);
      spent = 0;
    },
    overhead: () => spent,
  };
}
