import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ManualClock } from '../../../foundation/time/manual-clock.ts';
import { widgetKind } from '../../schema/testing.ts';
import { EventLog } from '../../watch/event-log.ts';
import { describeStorage } from '../storage.conformance.ts';
import { ObjectDatabase } from './object-database.ts';

describeStorage('ObjectStorage in SQLite', { finalizers: true }, async () => {
  const folder = await mkdtemp(join(tmpdir(), 'sluice-objects-'));
  const clock = new ManualClock();
  const database = ObjectDatabase.open({ path: join(folder, 'objects.db'), clock, maxJournalEvents: 50 });
  const log = new EventLog({ clock, journal: database.journal, maxEvents: 10 });
  database.attach(log);
  const storage = database.storage(widgetKind, log);
  const sample = (name: string) => widgetKind.complete({ metadata: { name, namespace: 'default' }, spec: {} });
  let size = 1;
  return {
    storage,
    sample: (index) => sample(`w${index}`),
    changeSpec: (object) => {
      size += 1;
      return { ...object, spec: { ...object.spec, size } };
    },
    changeStatus: (object) => ({ ...object, status: { ready: true, note: `for ${object.metadata.resourceVersion}` } }),
    overflow: async () => {
      const fillers = Array.from({ length: 1200 }, (_, index) => sample(`filler-${index}`));
      await Promise.all(fillers.map((filler) => storage.create({ actor: { name: 'filler' }, face: 'api' }, filler)));
    },
    close: async () => {
      log.close();
      database.close();
      await rm(folder, { recursive: true });
    },
  };
});
