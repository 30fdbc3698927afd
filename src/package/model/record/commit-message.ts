import { z } from 'zod';
import { isSluiceError, SluiceError } from '../../../foundation/sluice-error.ts';
import type { RequestContext } from '../../../resource/object/request-context.ts';
import {
  formatStatement,
  MAX_STATEMENT_LENGTH,
  SIGNATURE_TRAILER,
  type SignedPayload,
  type SignedStatement,
  type StatementHead,
  statementExcess,
  statementHeadSchema,
} from '../../trust/statement/statement.ts';
import { listOf } from '../../trust/statement/strict-schemas.ts';
import {
  type Approval,
  approvalSchema,
  type Contributor,
  contributorSchema,
  type LifecycleStep,
  oneLine,
  parseRecord,
  type RecordStatement,
  stepSchema,
  type Verdict,
  verdictSchema,
} from './record.ts';

/**
 * Messages of the commits that carry packages. Porch reads the `kpt:{…}` line, Git's own tools the `Sluice-…:` trailers:
 * who made the request and why, and in an approval commit the signed statement.
 */
export interface PackageAnnotation {
  /** Full path of the package in the repository. */
  readonly package: string;
  readonly workspaceName: string;
  /** `v<N>` in an approval commit, else absent. */
  readonly revision?: string;
  readonly task?: unknown;
}

export interface FoldedRecord {
  readonly verdicts: readonly Verdict[];
  readonly steps: readonly LifecycleStep[];
  /** Content digest that was published. */
  readonly content: string;
  /** True where gates were not enforced (`sluice.dev/gates: warn` or `off`) and some gate was not open. */
  readonly gatesBypassed?: boolean;
  /** The task that created the revision, in the form of Porch. */
  readonly task?: unknown;
  /** Creation time of the draft, RFC 3339. */
  readonly createdAt?: string;
  /** Gates that were required, with their state, at the time of the approval; later policies do not change them. */
  readonly gates?: readonly StatedGate[];
  readonly contributors?: readonly Contributor[];
  readonly approvals?: readonly Approval[];
  /** Commits of the draft that Sluice created, with their actors, if pushes contributed others; the latest ones. */
  readonly commits?: readonly { readonly commit: string; readonly by: string }[];
  /** Set if a policy permitted the actor to publish with closed gates. */
  readonly breakGlass?: { readonly by: string; readonly reason: string };
  /** The rules of policies, and freezes, that blocked it when it was published by break-glass or by a merge of the Git host. */
  readonly rulesBypassed?: readonly string[];
  /** Set if the Git host merged it with closed gates, or without the required approvals: then it is out of band. */
  readonly mergeBypass?: {
    /** Why the approvals were not enough. */
    readonly notApproved?: string;
    /** Which reviewers requested changes. */
    readonly objection?: string;
    /** Which files outside of the package were merged with it. */
    readonly foreign?: string;
  };
}

/** A gate as it was when the kernel evaluated it. */
export interface StatedGate {
  readonly type: string;
  /** `Kptfile`, or `policy <name>`. */
  readonly requiredBy: readonly string[];
  readonly state: string;
}

/** The signed part of a publication. */
export interface PublicationStatement extends StatementHead {
  readonly kind: 'publication';
  /** The number that it got. */
  readonly revision: number;
  /** Tree of the package. */
  readonly tree: string;
  /** The commit of the draft that was approved. */
  readonly draft: string;
  /** The branch that it was approved onto; a repository can be registered with several. */
  readonly branch: string;
  /**
   * First parent of the approval commit: the position of the publication on the branch. Anyone can copy a statement into another
   * commit or tag, and on one line no other commit has this parent.
   */
  readonly onto: string;
  /**
   * The commit, where Sluice made it for several publications at once: each has its statement in a tag of its own on it. Absent where the commit
   * carries the statement, and where a Git host made the commit.
   */
  readonly sharedCommit?: string;
  readonly record: FoldedRecord;
}

export interface CommitFacts {
  readonly annotations: readonly PackageAnnotation[];
  /** `kpt:` lines without a valid annotation: reported, never fatal. */
  readonly invalidAnnotations: readonly string[];
  readonly actor: string | undefined;
  readonly face: string | undefined;
  readonly action: string | undefined;
  readonly reason: string | undefined;
  /** Local changes that the merge in this commit overwrote; see `overwrittenText`. */
  readonly overwritten: string | undefined;
  /** Files of which the merge in this commit has one side; see `keptText`. */
  readonly kept: string | undefined;
  /** The record of a publication: signed if there is a `statement`, otherwise of an earlier version and a claim. */
  readonly record: FoldedRecord | undefined;
  readonly statement: SignedStatement<PublicationStatement> | undefined;
  /** Reason why the message was not parsed, as one sentence without a subject: it is too long. */
  readonly unread?: string;
}

const annotationSchema = z.looseObject({
  package: z.string().default(''),
  workspaceName: z.string().default(''),
  revision: z.string().optional(),
  task: z.unknown().optional(),
});

const foldedSchema = z.object({
  verdicts: listOf(verdictSchema),
  steps: listOf(stepSchema),
  content: z.string(),
  gatesBypassed: z.boolean().optional(),
  task: z.unknown().optional(),
  createdAt: z.string().optional(),
  gates: listOf(z.object({ type: z.string(), requiredBy: listOf(z.string()), state: z.string() })).optional(),
  contributors: listOf(contributorSchema).optional(),
  approvals: listOf(approvalSchema).optional(),
  commits: listOf(z.object({ commit: z.string(), by: z.string() })).optional(),
  breakGlass: z.object({ by: z.string(), reason: z.string() }).optional(),
  rulesBypassed: listOf(z.string()).optional(),
  mergeBypass: z
    .object({ notApproved: z.string().optional(), objection: z.string().optional(), foreign: z.string().optional() })
    .optional(),
});

const publicationSchema = statementHeadSchema.extend({
  kind: z.literal('publication'),
  revision: z.int().min(1),
  tree: z.string(),
  draft: z.string(),
  branch: z.string(),
  onto: z.string(),
  sharedCommit: z.string().optional(),
  record: foldedSchema,
});

export function formatCommitMessage(
  subject: string,
  options: {
    /** One for each package that the commit is about. */
    readonly annotations?: readonly PackageAnnotation[];
    readonly context: RequestContext;
    /** The kernel's name of the step. */
    readonly action: string;
    /** Local changes that the merge in this commit overwrote: the report of them must outlive the process. */
    readonly overwritten?: string | undefined;
    /** Files of which the merge in this commit has one side, although both changed them. */
    readonly kept?: string | undefined;
    /** Of a publication, or the record of a removal from the main branch. */
    readonly statement?: SignedPayload;
  },
): string {
  const lines = [harmlessSubject(subject), ''];
  const { annotations = [] } = options;
  if (annotations.length > 0) lines.push(...annotations.map((annotation) => `kpt:${JSON.stringify(annotation)}`), '');
  lines.push(`Sluice-Action: ${oneLine(options.action)}`);
  lines.push(`Sluice-Actor: ${oneLine(options.context.actor.name)}`);
  lines.push(`Sluice-Face: ${options.context.face}`);
  if (options.context.reason !== undefined) lines.push(`Sluice-Reason: ${oneLine(options.context.reason)}`);
  if (options.overwritten !== undefined) lines.push(`Sluice-Overwritten: ${oneLine(options.overwritten)}`);
  if (options.kept !== undefined) lines.push(`Sluice-Kept: ${oneLine(options.kept)}`);
  if (options.statement !== undefined) lines.push(...statementTrailers(options.statement));
  const message = `${lines.join('\n')}\n`;
  const excess = messageExcess(message) ?? (options.statement && statementExcess(options.statement.payload));
  if (excess !== undefined)
    throw new SluiceError(
      'LimitExceeded',
      `the commit cannot be written: its message would be too large to read, ${excess}; shorten the reason and the texts of conditions`,
    );
  return message;
}

/** The lines that carry a statement, in a commit of the main branch or in the message of an annotated tag. */
export function statementTrailers({ payload, signature }: SignedPayload): string[] {
  return [`Sluice-Statement: ${payload}`, `${SIGNATURE_TRAILER}: ${signature}`];
}

/** Annotations that are read of one message. Porch and Sluice write one; merges of many commits have one for each. */
const MAX_ANNOTATIONS = 1000;

/** Maximum length of a message without its statement. Messages of Porch contain the task of a revision. */
export const MAX_MESSAGE_LENGTH = 256 * 1024;
/** Lines with a separate limit, `MAX_STATEMENT_LENGTH`. */
const LONG_TRAILERS = ['\nSluice-Statement: ', '\nSluice-Record: '];

/** Returns why a message is too long to be parsed; undefined if it is not. */
function messageExcess(message: string): string | undefined {
  const long = LONG_TRAILERS.map((trailer) => lineLength(message, message.indexOf(trailer)));
  for (const length of long)
    if (length > MAX_STATEMENT_LENGTH + 100)
      return `it has a statement of ${length} characters, at most ${MAX_STATEMENT_LENGTH} are read`;
  const length = long.reduce((rest, statement) => rest - statement, message.length);
  return length > MAX_MESSAGE_LENGTH
    ? `it has ${length} characters, at most ${MAX_MESSAGE_LENGTH} are read`
    : undefined;
}

/** Length of the line that begins with the line break at `start`; 0 for -1. */
function lineLength(message: string, start: number): number {
  if (start === -1) return 0;
  const end = message.indexOf('\n', start + 1);
  return (end === -1 ? message.length : end) - start;
}

const NO_FACTS: CommitFacts = {
  ...{ annotations: [], invalidAnnotations: [], record: undefined, statement: undefined },
  ...{ actor: undefined, face: undefined, action: undefined, reason: undefined },
  ...{ overwritten: undefined, kept: undefined },
};

/** Returns the facts about a commit whose message is not parsed. */
export function unreadFacts(unread: string): CommitFacts {
  return { ...NO_FACTS, unread };
}

/** Returns the relevant lines with their positions: most of a long message is irrelevant. */
function* linesOf(message: string): Generator<{ readonly start: number; readonly line: string }> {
  for (let start = 0; start <= message.length; ) {
    const next = message.indexOf('\n', start);
    const end = next === -1 ? message.length : next;
    if (message.startsWith('kpt:', start) || message.startsWith('Sluice-', start))
      yield { start, line: message.slice(start, message[end - 1] === '\r' ? end - 1 : end) };
    start = end + 1;
  }
}

/**
 * Parses the data of Porch and Sluice in a commit message. Never throws; takes time in proportion to the length of the message.
 */
export function parseCommitMessage(message: string): CommitFacts {
  const excess = messageExcess(message);
  if (excess !== undefined) return unreadFacts(excess);
  const annotations: PackageAnnotation[] = [];
  const invalidAnnotations: string[] = [];
  const trailers = new Map<string, string>();
  for (const { start, line } of linesOf(message)) {
    if (line.startsWith('kpt:')) {
      if (annotations.length + invalidAnnotations.length >= MAX_ANNOTATIONS) continue;
      const parsed = annotationSchema.safeParse(parseJson(line.slice(4)));
      if (parsed.success) {
        const { package: packageName, workspaceName, revision, task } = parsed.data;
        annotations.push({
          package: packageName,
          workspaceName,
          ...(revision === undefined || revision === '' ? {} : { revision }),
          ...(task === undefined ? {} : { task }),
        });
      } else invalidAnnotations.push(line);
    } else if (start > 0) {
      // A folded record may contain line separators of Unicode, which `.` does not match without the flag `s`.
      const match = /^Sluice-([A-Za-z-]+): (.*)$/s.exec(line);
      if (match?.[1] !== undefined && match[2] !== undefined) trailers.set(match[1], match[2]);
    }
  }
  const folded = trailers.get('Record');
  const statement = parseStatement(trailers.get('Statement'), trailers.get('Signature'));
  return {
    annotations,
    invalidAnnotations,
    actor: trailers.get('Actor'),
    face: trailers.get('Face'),
    action: trailers.get('Action'),
    reason: trailers.get('Reason'),
    overwritten: trailers.get('Overwritten'),
    kept: trailers.get('Kept'),
    record: statement === undefined && folded !== undefined ? parseFolded(folded) : undefined,
    statement,
  };
}

/** The statement in an annotated tag, by the data of the tag object; undefined if it has none. */
export function parseTagStatement(data: Buffer): SignedStatement<PublicationStatement> | undefined {
  const text = data.toString('utf8');
  return parseCommitMessage(text.slice(text.indexOf('\n\n') + 2)).statement;
}

/** The signed record in a commit that removes a package from the main branch; undefined for any other message. */
export function parseRemoval(message: string): SignedStatement<RecordStatement> | undefined {
  if (messageExcess(message) !== undefined) return undefined;
  const lines = message.split('\n');
  const trailer = (name: string) => lines.find((line) => line.startsWith(`${name}: `))?.slice(name.length + 2);
  const [payload, signature] = [trailer('Sluice-Statement'), trailer(SIGNATURE_TRAILER)];
  if (payload === undefined || signature === undefined) return undefined;
  try {
    return parseRecord(formatStatement('removal', { payload, signature })).signed;
  } catch (error) {
    if (isSluiceError(error, 'Corrupt')) return undefined;
    throw error;
  }
}

/** The record in a publication; a claim unless its statement is trusted. */
export function publishedRecordOf({ record, statement }: CommitFacts): FoldedRecord | undefined {
  return statement?.statement.record ?? record;
}

function parseStatement(
  payload: string | undefined,
  signature = '',
): SignedStatement<PublicationStatement> | undefined {
  if (payload === undefined || statementExcess(payload) !== undefined) return undefined;
  const value = parseJson(payload);
  if (!publicationSchema.safeParse(value).success) return undefined;
  // The value as it was read is kept: the signature covers fields that a later version added.
  return { statement: value as PublicationStatement, signature };
}

/** A subject that a user wrote must not read as an annotation or a trailer. */
function harmlessSubject(subject: string): string {
  const line = oneLine(subject).trim() || 'Change without a description';
  return line.startsWith('kpt:') || line.startsWith('Sluice-') ? JSON.stringify(line) : line;
}

function parseFolded(text: string): FoldedRecord | undefined {
  if (statementExcess(text) !== undefined) return undefined;
  const parsed = foldedSchema.safeParse(parseJson(text));
  // Values from JSON have no fields that are present and undefined.
  return parsed.success ? (parsed.data as FoldedRecord) : undefined;
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    // The caller reports the line; the parser's own words would not help.
    return undefined;
  }
}
