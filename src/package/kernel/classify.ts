import type { Oid, RefChange } from '../../git/git-repository.ts';
import {
  deletionProposedRef,
  draftRef,
  mainRef,
  parseRef,
  proposedRef,
  type RefMeaning,
  type RepositoryLayout,
  tagRef,
} from '../model/identity/layout.ts';
import { oneLine } from '../model/record/record.ts';
import { evaluatePublication, type PublicationFacts, type PublicationFlaw } from './publication.ts';

/*
 * Classifies ref changes that the kernel did not make: pushes, merges, other tools, other processes of Sluice.
 *
 * `in band` means that the kernel would have made the same change, or is known to have decided it (`decided`).
 *
 * | before → after                        | finding             | in band                                                   |
 * |---------------------------------------|---------------------|-----------------------------------------------------------|
 * | – → draft                             | DraftCreated        | yes; no if there is a proposed branch of its name |
 * | draft → other commit                  | DraftPushed         | yes                                                       |
 * | draft → commit that is no descendant  | DraftRewritten      | yes                                                       |
 * | draft → –                             | DraftRemoved        | yes                                                       |
 * | draft → proposed, proposed → draft    | Moved               | only if decided: a plain push passes no gate              |
 * | – → proposed                          | ProposedCreated     | only if decided, as above                                 |
 * | proposed → other commit               | ProposedPushed      | only if decided: a trusted record names the commit        |
 * | proposed → –                          | ProposedRemoved     | yes                                                       |
 * | – → tag                               | Published           | by `evaluatePublication`, and a trusted key signed it     |
 * | tag → other object                    | TagMoved            | never: a published revision does not change               |
 * | tag → –                               | TagRemoved          | only if decided, or gone together with its deletion mark  |
 * | – → mark, mark → other commit         | DeletionProposed    | only if decided, or it marks a published revision         |
 * | mark → –, the revision stays          | DeletionUndone      | yes                                                       |
 * | main → other commit, – → main         | MainMoved           | only if decided; see below                                |
 * | main → –                              | MainRemoved         | only if decided, which the kernel never does              |
 * | – → record, record → other commit     | RecordChanged       | only if decided, or trusted and on top of the one before  |
 * | record → –                            | RecordRemoved       | only if decided, or its draft is removed too              |
 *
 * A draft or proposed branch that ends because a tag of its workspace appears is part of that `Published`. If `before` has no
 * refs at all, this is the first sync, and an existing main branch has not moved. The caller leaves a main branch out that moved on
 * along its line: the content of its commits is evaluated by package, see `MainDiffers`. Refs without a meaning in the layout are
 * ignored. Findings only report; whether an out-of-band draft is used is decided where gates are evaluated, at the next request.
 */
export type FindingKind =
  | 'DraftCreated'
  | 'DraftPushed'
  | 'DraftRewritten'
  | 'DraftRemoved'
  | 'Moved'
  | 'ProposedCreated'
  | 'ProposedPushed'
  | 'ProposedRemoved'
  | 'Published'
  | 'TagMoved'
  | 'TagRemoved'
  | 'DeletionProposed'
  | 'DeletionUndone'
  | 'MainMoved'
  | 'MainRemoved'
  | 'RecordChanged'
  | 'RecordRemoved'
  /** No ref changed: a publication or record does not count any more, since a key was revoked or is not listed any more. */
  | 'TrustLost'
  | 'LookalikeType';

export interface Finding {
  readonly kind: FindingKind;
  /** Full name; for `Moved` the new ref. */
  readonly ref: string;
  /** Relative to the repository's directory; undefined for the main branch and for records of unknown revisions. */
  readonly package: string | undefined;
  readonly workspace?: string;
  /** Last segment of a tag or deletion mark. */
  readonly version?: string;
  /** For `Moved` the value of the previous ref. */
  readonly before: Oid | undefined;
  readonly after: Oid | undefined;
  readonly inBand: boolean;
  /** Reason why a publication is out of band. */
  readonly reason?: PublicationFlaw;
  /** One human-readable sentence. */
  readonly message: string;
}

/** The caller's facts about the objects involved. Requested only for changed refs; undefined means unknown. */
export interface Knowledge {
  publication(ref: string, oid: Oid): PublicationFacts | undefined;
  /** Returns why the statement of a publication does not count; undefined if it does, or if there is none. */
  distrust(ref: string, oid: Oid): { readonly reason: PublicationFlaw; readonly message: string } | undefined;
  isAncestor(older: Oid, newer: Oid): boolean | undefined;
  /** True for a record that a trusted key signed for the revision of this ref, and that is no older than the last one known. */
  trustedRecord(ref: string, oid: Oid): boolean;
  /**
   * True if the kernel is known to have taken this ref from `before` to `after`, in one step or several: by the caller's own
   * journal, or by the steps in the record of the revision.
   */
  decided(change: RefChange): boolean;
}

interface Change<Meaning extends RefMeaning = RefMeaning> extends RefChange {
  readonly meaning: Meaning;
}

type Meaning<Kind extends RefMeaning['kind']> = Extract<RefMeaning, { kind: Kind }>;

interface RefSnapshot {
  readonly before: ReadonlyMap<string, Oid>;
  readonly after: ReadonlyMap<string, Oid>;
  readonly layout: RepositoryLayout;
  readonly knowledge: Knowledge;
  /** `<package>/<workspace>` of revisions that became a tag since. */
  readonly published: ReadonlySet<string>;
}

/** Classifies the ref changes of a repository; sorted by ref. Pure and total. The table is at the top of this file. */
export function classify(
  before: ReadonlyMap<string, Oid>,
  after: ReadonlyMap<string, Oid>,
  layout: RepositoryLayout,
  knowledge: Knowledge,
): Finding[] {
  const changes: Change[] = [];
  for (const [name, oid] of after) {
    const old = before.get(name);
    if (old !== oid) changes.push({ name, before: old, after: oid, meaning: parseRef(layout, name) });
  }
  for (const [name, oid] of before) {
    if (!after.has(name)) changes.push({ name, before: oid, after: undefined, meaning: parseRef(layout, name) });
  }
  changes.sort((a, b) => (a.name < b.name ? -1 : 1));
  const look: RefSnapshot = { before, after, layout, knowledge, published: publishedWorkspaces(changes, knowledge) };
  const findings: Finding[] = [];
  for (const change of changes) {
    const finding = classifyChange(change, look);
    if (finding !== undefined) findings.push({ ...finding, message: oneLine(finding.message) });
  }
  return findings;
}

function publishedWorkspaces(changes: readonly Change[], knowledge: Knowledge): Set<string> {
  const result = new Set<string>();
  for (const { name, after, meaning } of changes) {
    if (meaning.kind !== 'published' || after === undefined) continue;
    const facts = knowledge.publication(name, after)?.commit;
    const signed = facts?.statement?.statement;
    if (signed !== undefined) result.add(`${meaning.package}/${signed.workspace}`);
    for (const annotation of facts?.annotations ?? []) {
      if (annotation.revision !== undefined) result.add(`${meaning.package}/${annotation.workspaceName}`);
    }
  }
  return result;
}

function classifyChange(change: Change, look: RefSnapshot): Finding | undefined {
  const { meaning } = change;
  switch (meaning.kind) {
    case 'main':
      return classifyMain(change, look);
    case 'draft':
      return classifyDraft({ ...change, meaning }, look);
    case 'proposed':
      return classifyProposed({ ...change, meaning }, look);
    case 'published':
      return classifyTag({ ...change, meaning }, look);
    case 'deletionProposed':
      return classifyMark({ ...change, meaning }, look);
    case 'record':
      return classifyRecord({ ...change, meaning }, look);
    case 'other':
      return undefined;
  }
}

function classifyDraft(change: Change<Meaning<'draft'>>, look: RefSnapshot): Finding | undefined {
  const { before, after, meaning } = change;
  const what = `${meaning.package}/${meaning.workspace}`;
  const sibling = proposedRef(look.layout, keyOf(meaning));
  const found = finding(change, { package: meaning.package, workspace: meaning.workspace });
  if (after === undefined) {
    if (movedTo(sibling, look) || look.published.has(what)) return undefined;
    return found('DraftRemoved', true, `the draft ${what} was removed, it was at ${before}`);
  }
  if (before === undefined) {
    const proposed = look.before.get(sibling);
    if (proposed !== undefined && !look.after.has(sibling)) {
      // Once the kernel has ended the proposal, what is pushed to the draft is a push like any other.
      const ended = { name: sibling, before: proposed, after: undefined };
      const inBand = look.knowledge.decided(change) || look.knowledge.decided(ended);
      const how = inBand ? '' : ' by a plain push, so the actor who rejected it is not known';
      return { ...found('Moved', inBand, `${what} went from proposed back to draft${how}`), before: proposed };
    }
    if (look.after.has(sibling)) {
      return found(
        'DraftCreated',
        false,
        `the draft ${what} was pushed beside a proposed revision of the same name; one of the two branches has to go`,
      );
    }
    return found('DraftCreated', true, `the draft ${what} is new`);
  }
  if (look.knowledge.isAncestor(before, after) === false) {
    return found('DraftRewritten', true, `the draft ${what} was rewritten: ${before} is not an ancestor of ${after}`);
  }
  return found('DraftPushed', true, `the draft ${what} moved on to ${after}`);
}

function classifyProposed(change: Change<Meaning<'proposed'>>, look: RefSnapshot): Finding | undefined {
  const { before, after, meaning } = change;
  const what = `${meaning.package}/${meaning.workspace}`;
  const sibling = draftRef(look.layout, keyOf(meaning));
  const found = finding(change, { package: meaning.package, workspace: meaning.workspace });
  if (after === undefined) {
    if (movedTo(sibling, look) || look.published.has(what)) return undefined;
    return found('ProposedRemoved', true, `the proposed revision ${what} was removed, it was at ${before}`);
  }
  const decided = look.knowledge.decided(change);
  if (before === undefined) {
    const draft = look.before.get(sibling);
    if (draft !== undefined && !look.after.has(sibling)) {
      const how = decided ? '' : ' by a plain push, so no gate was evaluated yet';
      return { ...found('Moved', decided, `${what} went from draft to proposed${how}`), before: draft };
    }
    const how = decided ? '' : ', created by a plain push, so no gate was evaluated yet';
    return found('ProposedCreated', decided, `the proposed revision ${what} is new${how}`);
  }
  const how = decided ? '' : ' by a plain push: it is not what was proposed';
  return found('ProposedPushed', decided, `the proposed revision ${what} was changed to ${after}${how}`);
}

function classifyTag(change: Change<Meaning<'published'>>, look: RefSnapshot): Finding {
  const { name, before, after, meaning } = change;
  const what = `${meaning.package}/${meaning.version}`;
  const found = finding(change, { package: meaning.package, version: meaning.version });
  if (after === undefined) {
    const mark = deletionProposedRef(look.layout, meaning.package, meaning.version);
    const inOrder = look.before.has(mark) && !look.after.has(mark);
    if (inOrder || look.knowledge.decided(change)) return found('TagRemoved', true, `${what} was deleted`);
    return found(
      'TagRemoved',
      false,
      `the tag of ${what} was removed, and no signed statement records a deletion of the revision`,
    );
  }
  if (before !== undefined) {
    return found(
      'TagMoved',
      false,
      `the tag of ${what} was moved from ${before} to ${after}; a published revision must not change`,
    );
  }
  const facts = look.knowledge.publication(name, after);
  if (facts === undefined) {
    return found('Published', false, `the tag of ${what} points to ${after}, which cannot be read as a commit`);
  }
  const evaluation = evaluatePublication(facts);
  const distrust = evaluation.inBand ? look.knowledge.distrust(name, after) : undefined;
  if (distrust !== undefined) {
    return {
      ...found('Published', false, `the publication of ${what} does not count: ${distrust.message}`),
      reason: distrust.reason,
    };
  }
  if (evaluation.inBand) return found('Published', true, evaluation.warning ?? `${what} was published`);
  return { ...found('Published', false, evaluation.message), reason: evaluation.reason };
}

function classifyMark(change: Change<Meaning<'deletionProposed'>>, look: RefSnapshot): Finding | undefined {
  const { after, meaning } = change;
  const what = `${meaning.package}/${meaning.version}`;
  const tag = tagRef(look.layout, meaning.package, meaning.version);
  const found = finding(change, { package: meaning.package, version: meaning.version });
  if (after === undefined) {
    // A deleted tag has a separate finding.
    if (look.before.has(tag) && !look.after.has(tag)) return undefined;
    return found('DeletionUndone', true, `${what} is not proposed for deletion any more`);
  }
  const inBand = look.after.has(tag) || meaning.version === look.layout.branch || look.knowledge.decided(change);
  if (inBand) return found('DeletionProposed', true, `${what} is proposed for deletion`);
  return found('DeletionProposed', false, `${what} is marked for deletion, but no such revision is published`);
}

function classifyMain(change: Change, look: RefSnapshot): Finding | undefined {
  const { before, after } = change;
  const ref = mainRef(look.layout);
  const found = finding(change, { package: undefined });
  const decided = look.knowledge.decided(change);
  if (after === undefined) return found('MainRemoved', decided, `${ref} was removed, it was at ${before}`);
  if (look.before.size === 0) return undefined;
  if (decided) return found('MainMoved', true, `${ref} moved to ${after}`);
  const how = before === undefined ? 'is new' : `was rewritten: ${before} is not on its line any more`;
  return found('MainMoved', false, `${ref} is at ${after} and ${how}`);
}

function classifyRecord(change: Change<Meaning<'record'>>, look: RefSnapshot): Finding {
  const { before, after, meaning } = change;
  const what = `${meaning.package}/${meaning.workspace}`;
  const found = finding(change, { package: meaning.package, workspace: meaning.workspace });
  const decided = look.knowledge.decided(change);
  if (after === undefined) {
    const key = keyOf(meaning);
    const stays = look.after.has(draftRef(look.layout, key)) || look.after.has(proposedRef(look.layout, key));
    if (decided || !stays) return found('RecordRemoved', true, `the record of ${what} was removed`);
    return found(
      'RecordRemoved',
      false,
      `the record of ${what} was removed by a push; its verdicts do not count any more`,
    );
  }
  if (decided) return found('RecordChanged', true, `the record of ${what} changed`);
  if (!look.knowledge.trustedRecord(change.name, after)) {
    return found(
      'RecordChanged',
      false,
      `the record of ${what} was replaced by ${after}, which no trusted key signed; its verdicts do not count`,
    );
  }
  if (before !== undefined && look.knowledge.isAncestor(before, after) === false) {
    return found(
      'RecordChanged',
      false,
      `the record of ${what} was rewritten: ${before} is not an ancestor of ${after}`,
    );
  }
  return found('RecordChanged', true, `the record of ${what} changed`);
}

function movedTo(ref: string, look: RefSnapshot): boolean {
  return look.after.has(ref) && !look.before.has(ref);
}

function keyOf(meaning: { readonly package: string; readonly workspace: string }) {
  return { repository: '', package: meaning.package, workspace: meaning.workspace };
}

function finding(
  { name, before, after }: RefChange,
  about: { readonly package: string | undefined; readonly workspace?: string; readonly version?: string },
): (kind: FindingKind, inBand: boolean, message: string) => Finding {
  return (kind, inBand, message) => ({ kind, ref: name, ...about, before, after, inBand, message });
}
