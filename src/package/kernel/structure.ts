import type { Refusal, RefusalCode, RevisionState } from '../model/revision/revision-state.ts';

/** Why a package is refused by every step towards its publication, whatever its gates and the rules of policies say. */
export function refuseStructure({
  name,
  problem,
  invalidKptfile,
  nestedWith,
}: Pick<RevisionState, 'name' | 'problem' | 'invalidKptfile' | 'nestedWith'>): Refusal[] {
  const refusals: Refusal[] = [];
  if (problem !== undefined)
    refusals.push({ code: 'Unreadable', message: `the Kptfile of ${name} cannot be read: ${problem}` });
  if (problem === undefined && invalidKptfile !== undefined)
    refusals.push({
      code: 'InvalidKptfile',
      message: `kpt rejects a Kptfile of ${name}: ${invalidKptfile} Repair it, then try again`,
    });
  if (nestedWith !== undefined)
    refusals.push({
      code: 'NestedPackage',
      message: `packages cannot be nested: ${name} is above or below the package ${nestedWith}`,
    });
  return refusals;
}

/** Of each refusal of an approval, whether it lasts until users change the package, or its place: nothing that a pull request has would end it. */
const IS_LASTING: Readonly<Record<RefusalCode, boolean>> = {
  ...{ Unreadable: true, InvalidKptfile: true, NestedPackage: true, Conflicted: true, Conflict: true },
  ...{ TagConflict: true },
  // Gates, rules, approvals and reviews have checks and texts of their own.
  ...{ GateUnmet: false, VerdictStale: false, Blocked: false, NotApproved: false, NotAllowed: false },
  ...{ ChangesRequested: false, ForeignFiles: false, PublishedSince: false },
  ...{ NotMerged: false, WrongState: false, InUse: false },
};

/** Whether this is the reason of such a refusal. */
export function isLastingRefusal(reason: string): reason is RefusalCode {
  return Object.entries(IS_LASTING).some(([code, isLasting]) => isLasting && code === reason);
}
