// Writes objects into a database until it is killed, and reports the begin and the end of each write.
// Arguments: the database, a name for this run.
import { writeSync } from 'node:fs';
import { isSluiceError, unlessMissing } from '../../src/foundation/sluice-error.ts';
import { systemClock } from '../../src/foundation/time/clock.ts';
import { configMapKind } from '../../src/resource/kinds/core/config-map.ts';
import { ObjectDatabase } from '../../src/resource/storage/sqlite/object-database.ts';
import { EventLog } from '../../src/resource/watch/event-log.ts';

const [path = '', life = ''] = process.argv.slice(2);
/** Each lane has keys of its own and writes one of them at a time. */
const LANES = 8;
const KEYS = 5;

const report = (line: object) => writeSync(1, `${JSON.stringify(line)}\n`);
const context = { actor: { name: 'writer' }, face: 'api' } as const;

report({ opening: life });
const database = ObjectDatabase.open({ path, clock: systemClock });
const log = new EventLog({ clock: systemClock, journal: database.journal });
database.attach(log);
const storage = database.storage(configMapKind, log);

let count = 0;

async function lane(number: number): Promise<never> {
  for (;;) {
    const name = `k-${number}-${Math.floor(Math.random() * KEYS)}`;
    const key = { namespace: 'default', name };
    const live = await unlessMissing(storage.get(context, key));
    const removes = live !== undefined && Math.random() < 0.3;
    if (!removes) count += 1;
    const mark = removes ? '' : `${life}-${count}`;
    const object = configMapKind.complete({
      metadata: { ...key, ...(live && { resourceVersion: live.metadata.resourceVersion }) },
      data: { mark, filler: 'x'.repeat(Math.floor(Math.random() * 2000)) },
    });
    report({ begin: name, mark });
    try {
      const { metadata } = await (removes
        ? storage.delete(context, key)
        : live === undefined
          ? storage.create(context, object)
          : storage.update(context, object));
      report({ done: name, mark, version: metadata.resourceVersion });
    } catch (error) {
      if (!isSluiceError(error, 'Unavailable')) throw error;
      report({ failed: name, mark, message: error.message });
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
  }
}

await Promise.all(Array.from({ length: LANES }, (_, number) => lane(number)));
