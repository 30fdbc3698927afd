import { z } from 'zod';
import { isSluiceError } from '../foundation/sluice-error.ts';
import type { RequestContext } from '../resource/request-context.ts';
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
import {
  payloadOf,
  SIGNATURE_TRAILER,
  type SignedStatement,
  type StatementHead,
  statementHeadSchema,
  statementMessage,
} from './trust/statement.ts';

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
  /** Porch's word for how the revision was made. */
  readonly task?: unknown;
  /** When the draft was made, RFC 3339. */
  readonly createdAt?: string;
  /** Gates that were required, with their state, at the time of the approval; later policies change nothing about them. */
  readonly gates?: readonly StatedGate[];
  readonly contributors?: readonly Contributor[];
  readonly approvals?: readonly Approval[];
  /** Set where a policy let somebody publish with closed gates. */
  readonly breakGlass?: { readonly by: string; readonly reason: string };
}

/** A gate as it was when the kernel evaluated it. */
export interface StatedGate {
  readonly type: string;
  /** `Kptfile`, or `policy <name>`. */
  readonly requiredBy: readonly string[];
  readonly state: string;
}

/** What is signed of a publication. */
export interface PublicationStatement extends StatementHead {
  readonly kind: 'publication';
  /** The number that it got. */
  readonly revision: number;
  /** Tree of the package. */
  readonly tree: string;
  /** The commit of the draft that was approved. */
  readonly draft: string;
  readonly record: FoldedRecord;
}

export interface CommitFacts {
  readonly annotations: readonly PackageAnnotation[];
  /** `kpt:` lines that hold no annotation: reported, never fatal. */
  readonly invalidAnnotations: readonly string[];
  readonly actor: string | undefined;
  readonly face: string | undefined;
  readonly action: string | undefined;
  readonly reason: string | undefined;
  /** The record of a publication: signed if there is a `statement`, otherwise of an earlier version and a claim. */
  readonly record: FoldedRecord | undefined;
  readonly statement: SignedStatement<PublicationStatement> | undefined;
}

const annotationSchema = z.looseObject({
  package: z.string().default(''),
  workspaceName: z.string().default(''),
  revision: z.string().optional(),
  task: z.unknown().optional(),
});

const foldedSchema = z.object({
  verdicts: z.array(verdictSchema),
  steps: z.array(stepSchema),
  content: z.string(),
  gatesBypassed: z.boolean().optional(),
  task: z.unknown().optional(),
  createdAt: z.string().optional(),
  gates: z.array(z.object({ type: z.string(), requiredBy: z.array(z.string()), state: z.string() })).optional(),
  contributors: z.array(contributorSchema).optional(),
  approvals: z.array(approvalSchema).optional(),
  breakGlass: z.object({ by: z.string(), reason: z.string() }).optional(),
});

const publicationSchema = statementHeadSchema.extend({
  kind: z.literal('publication'),
  revision: z.int().min(1),
  tree: z.string(),
  draft: z.string(),
  record: foldedSchema,
});

export function formatCommitMessage(
  subject: string,
  options: {
    readonly annotation?: PackageAnnotation;
    readonly context: RequestContext;
    /** The kernel's word for what happened. */
    readonly action: string;
    /** Of a publication, or the record of a removal from the main branch. */
    readonly statement?: SignedStatement<PublicationStatement> | SignedStatement<RecordStatement>;
  },
): string {
  const lines = [harmlessSubject(subject), ''];
  if (options.annotation !== undefined) lines.push(`kpt:${JSON.stringify(options.annotation)}`, '');
  lines.push(`Sluice-Action: ${oneLine(options.action)}`);
  lines.push(`Sluice-Actor: ${oneLine(options.context.actor.name)}`);
  lines.push(`Sluice-Face: ${options.context.face}`);
  if (options.context.reason !== undefined) lines.push(`Sluice-Reason: ${oneLine(options.context.reason)}`);
  if (options.statement !== undefined) lines.push(...statementTrailers(options.statement));
  return `${lines.join('\n')}\n`;
}

/** The lines that carry a statement, in a commit of the main branch or in the message of an annotated tag. */
export function statementTrailers({ statement, signature }: SignedStatement): string[] {
  return [`Sluice-Statement: ${payloadOf(statement)}`, `${SIGNATURE_TRAILER}: ${signature}`];
}

/** Annotations that are read of one message. Porch and Sluice write one; merges of many commits have one for each. */
const MAX_ANNOTATIONS = 1000;

/** Reads what Porch and Sluice left in a commit message. Never throws. */
export function parseCommitMessage(message: string): CommitFacts {
  const annotations: PackageAnnotation[] = [];
  const invalidAnnotations: string[] = [];
  const trailers = new Map<string, string>();
  for (const [index, text] of message.split('\n').entries()) {
    const line = text.endsWith('\r') ? text.slice(0, -1) : text;
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
    } else if (index > 0) {
      // A folded record may hold line separators of Unicode, which `.` leaves out unless told otherwise.
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
    record: statement === undefined && folded !== undefined ? parseFolded(folded) : undefined,
    statement,
  };
}

/** The signed record in a commit that removes a package from the main branch; undefined for any other message. */
export function parseRemoval(message: string): SignedStatement<RecordStatement> | undefined {
  const lines = message.split('\n');
  const trailer = (name: string) => lines.find((line) => line.startsWith(`${name}: `))?.slice(name.length + 2);
  const [payload, signature] = [trailer('Sluice-Statement'), trailer(SIGNATURE_TRAILER)];
  if (payload === undefined || signature === undefined) return undefined;
  try {
    return parseRecord(statementMessage('removal', payload, signature)).signed;
  } catch (error) {
    if (isSluiceError(error, 'Corrupt')) return undefined;
    throw error;
  }
}

/** What a publication says of how it came about; a claim unless its statement is trusted. */
export function publishedRecordOf({ record, statement }: CommitFacts): FoldedRecord | undefined {
  return statement?.statement.record ?? record;
}

function parseStatement(
  payload: string | undefined,
  signature = '',
): SignedStatement<PublicationStatement> | undefined {
  if (payload === undefined) return undefined;
  const value = parseJson(payload);
  if (!publicationSchema.safeParse(value).success) return undefined;
  // The value as it was read is kept: the signature covers fields that a later version added.
  const statement = value as PublicationStatement;
  return canBeSigned(statement) ? { statement, signature } : undefined;
}

/** What is nested too deeply to be written again cannot have been signed, and nobody must fail over it later. */
function canBeSigned(statement: PublicationStatement): boolean {
  try {
    payloadOf(statement);
    return true;
  } catch (error) {
    if (isSluiceError(error, 'LimitExceeded')) return false;
    throw error;
  }
}

/** A subject that somebody wrote must not read as an annotation or a trailer. */
function harmlessSubject(subject: string): string {
  const line = oneLine(subject).trim() || 'Change without a description';
  return line.startsWith('kpt:') || line.startsWith('Sluice-') ? JSON.stringify(line) : line;
}

function parseFolded(text: string): FoldedRecord | undefined {
  const parsed = foldedSchema.safeParse(parseJson(text));
  // What came from JSON has no fields that are present and undefined.
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
