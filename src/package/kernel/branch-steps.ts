import type { RefStep, Refusal, RevisionState } from '../model/revision/revision-state.ts';

/*
 * The branches of a draft and of its proposal. After a rejection a user can restore the branch of the proposal, so that it is there beside its draft.
 */

/** Makes a draft a proposal; of one whose branch was restored, its draft is removed. */
export function proposalSteps(state: RevisionState): RefStep[] {
  const { lifecycle, refs, commit } = state;
  if (lifecycle === 'Proposed') return [keep(refs.proposed, commit), ...dropSameDraft(state)];
  return [create(refs.proposed, commit), remove(refs.draft, commit)];
}

export function rejectionSteps({ refs, commit, draft }: RevisionState): RefStep[] {
  return [draft === commit ? keep(refs.draft, commit) : create(refs.draft, commit), remove(refs.proposed, commit)];
}

/** A rejection must not replace a draft with other commits. */
export function refuseOtherDraft({ name, refs, commit, draft }: RevisionState): Refusal | undefined {
  if (draft === undefined || draft === commit) return undefined;
  return {
    code: 'WrongState',
    message: `cannot reject ${name}: it would become ${refs.draft}, which is there with another commit, ${draft}; remove ${refs.proposed} to keep that draft, or ${refs.draft} to reject what is proposed`,
  };
}

/** A draft beside a proposal of the same commit is what that was rejected to. */
export function dropSameDraft({ refs, commit, draft }: RevisionState): RefStep[] {
  return draft === commit ? [remove(refs.draft, commit)] : [];
}

/** Holds only as long as the ref is as it was read. */
function keep(ref: string, oid: string): RefStep {
  return { ref, expect: oid, become: { kind: 'commit', oid } };
}

function create(ref: string, oid: string): RefStep {
  return { ref, expect: null, become: { kind: 'commit', oid } };
}

function remove(ref: string, oid: string): RefStep {
  return { ref, expect: oid, become: { kind: 'absent' } };
}
