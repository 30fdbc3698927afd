import { conditionsOf } from '../../kptfile-schema/index.ts';
import { timestamp } from '../foundation/clock.ts';
import type { PackageContent } from './content.ts';
import type { PackageRevision } from './package-revision.ts';
import type { RevisionRecord } from './record.ts';
import { recordAtTip } from './verdict.ts';

/** The record of a revision as it stands for its tip, pushes since included. Published revisions carry theirs in the approval commit. */
export function currentRecord(revision: PackageRevision, content: PackageContent): RevisionRecord {
  const folded = revision.tip.facts.record;
  if (revision.lifecycle !== 'Draft' && revision.lifecycle !== 'Proposed' && folded !== undefined) {
    return {
      ...(revision.record ?? { version: 1, commit: revision.commit }),
      verdicts: [...folded.verdicts],
      steps: [...folded.steps],
    };
  }
  const conditions = revision.kptfile === undefined ? new Map() : conditionsOf(revision.kptfile);
  const tip = {
    commit: revision.commit,
    madeBySluice: revision.tip.facts.action !== undefined,
    time: timestamp(revision.tip.time),
  };
  return recordAtTip(revision.record, tip, conditions, content);
}
