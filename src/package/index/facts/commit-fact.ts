import { messageOf } from '../../../foundation/sluice-error.ts';
import type { GitObject, ObjectStat, Oid } from '../../../git/git-repository.ts';
import { parseCommit } from '../../../git/objects/commit-codec.ts';
import { parseCommitMessage, parseTagStatement, unreadFacts } from '../../model/record/commit-message.ts';
import { LazyJson } from './lazy-json.ts';
import type { CommitText } from './tip-fact.ts';

/** Larger commits, tags and records are not read: the maximum text in characters of three bytes, with room for signatures. */
export const MAX_COMMIT_BYTES = 4 * 1024 * 1024;
/** Maximum length of the stored first line of a message, in characters. */
const MAX_SUBJECT_LENGTH = 1000;

/** The facts about a commit, wherever a package is in it. */
export interface CommitFact {
  readonly oid: Oid;
  readonly text: LazyJson<CommitText>;
}

/** Undefined for an object that is no commit. */
export function commitFactOf(commit: GitObject): CommitFact | undefined {
  if (commit.type !== 'commit') return undefined;
  try {
    const decoded = parseCommit(commit.data, commit.oid);
    const newline = decoded.message.indexOf('\n');
    const facts = parseCommitMessage(decoded.message);
    const text = {
      time: decoded.committer.time,
      author: decoded.author.name,
      ...authorFactsOf(decoded, facts),
      parents: decoded.parents,
      subject: decoded.message.slice(
        0,
        Math.min(newline === -1 ? decoded.message.length : newline, MAX_SUBJECT_LENGTH),
      ),
      facts,
    };
    return { oid: commit.oid, text: LazyJson.ofJson<CommitText>(text) };
  } catch (error) {
    // A push brought it: what it says about itself does not count.
    return { oid: commit.oid, text: LazyJson.of(unreadText(messageOf(error))) };
  }
}

/** Returns the facts about an author besides the name; the actor of a commit of Sluice is in its message. */
function authorFactsOf(
  { author, committer }: ReturnType<typeof parseCommit>,
  { actor }: CommitText['facts'],
): Partial<CommitText> {
  return {
    ...(author.email === '' || actor !== undefined ? {} : { authorEmail: author.email }),
    ...(author.time === committer.time ? {} : { authorTime: author.time }),
  };
}

/** Returns the facts about a commit that is too large to be read: it is listed with the reason. */
export function unreadCommit({ oid, size }: ObjectStat): CommitFact {
  return { oid, text: LazyJson.of(unreadText(`its commit has ${size} bytes, at most ${MAX_COMMIT_BYTES} are read`)) };
}

function unreadText(reason: string): CommitText {
  return { time: 0, author: '', parents: [], subject: '', facts: unreadFacts(reason) };
}

/** The statement of a publication can be in an annotated tag, if a Git host created the commit. */
export function withTag(commit: CommitFact | undefined, object: GitObject | undefined): CommitFact | undefined {
  if (commit === undefined || object?.type !== 'tag') return commit;
  const statement = parseTagStatement(object.data);
  if (statement === undefined) return commit;
  const { value } = commit.text;
  const carried = { ...value, facts: { ...value.facts, statement }, statementTag: object.oid };
  const { sharedCommit, draft, package: path } = statement.statement;
  if (sharedCommit !== commit.oid) return { oid: commit.oid, text: LazyJson.of<CommitText>(carried) };
  // Each of hundreds of publications keeps what is about it, in the form of a commit of its own.
  const [onto, ...drafts] = value.parents;
  const own = {
    ...carried,
    parents: [onto, drafts.find((parent) => parent === draft)].filter((parent) => parent !== undefined),
    facts: { ...carried.facts, annotations: value.facts.annotations.filter((one) => one.package === path) },
  };
  return { oid: commit.oid, text: LazyJson.of<CommitText>(own) };
}
