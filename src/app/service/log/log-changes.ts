import type { IndexChange } from '../../../package/index/state/index-delta.ts';
import type { PackageRevision } from '../../../package/model/revision/package-revision.ts';
import { repositoryIdOf } from '../../../package/model/revision/package-revision.ts';
import { isMergeOfDecision, isPublishedByMerge } from '../../../package/store/approve-by-merge.ts';
import type { Session } from '../../session/session.ts';
import type { LogEntry } from './log-entry.ts';
import { MergeAlarms } from './merge-alarms.ts';
import { type NarrationOptions, narrateChanges } from './narrate-changes.ts';

/** Narrates the changes of revisions, until the returned function is called. `onChanges` is called before. */
export function logChanges(
  session: Pick<Session, 'clock' | 'note' | 'store' | 'wasKnown'>,
  log: (entry: LogEntry) => void,
  onChanges: (changes: readonly IndexChange[]) => void,
): () => void {
  const { store, clock } = session;
  const repositoryOf = (row: PackageRevision) => store.findRepository(repositoryIdOf(row));
  const narration: NarrationOptions = {
    wasKnown: (revision) => session.wasKnown(revision),
    isMerge: (onMain) => isMergeOfDecision(onMain, repositoryOf(onMain)),
    isRegistered: (id) => store.findRepository(id) !== undefined,
  };
  const say = (changes: readonly IndexChange[]) => {
    for (const entry of narrateChanges(changes, clock.now(), narration)) log(entry);
  };
  const alarms = new MergeAlarms({
    clock,
    find: (id) => store.find(id),
    isAwaited: (onMain) => isPublishedByMerge(onMain, repositoryOf(onMain)),
    onStaying: (change) => say([change]),
  });
  const unsubscribe = store.subscribe((changes) => {
    onChanges(changes);
    say(alarms.sift(changes));
    for (const { git } of store.repositories()) session.note(git.engineNote);
  });
  return () => {
    unsubscribe();
    alarms.end();
  };
}
