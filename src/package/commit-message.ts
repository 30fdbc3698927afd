import { z } from 'zod';
import type { RequestContext } from '../resource/request-context.ts';
import { type LifecycleStep, oneLine, stepSchema, type Verdict, verdictSchema } from './record.ts';

/**
 * Messages of the commits that carry packages. Porch reads the `kpt:{…}` line, Git's own tools the `Sluice-…:` trailers:
 * who asked and why, and in an approval commit the folded record.
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
}

export interface CommitFacts {
  readonly annotations: readonly PackageAnnotation[];
  /** `kpt:` lines that hold no annotation: reported, never fatal. */
  readonly invalidAnnotations: readonly string[];
  readonly actor: string | undefined;
  readonly face: string | undefined;
  readonly action: string | undefined;
  readonly reason: string | undefined;
  readonly record: FoldedRecord | undefined;
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
});

export function formatCommitMessage(
  subject: string,
  options: {
    readonly annotation?: PackageAnnotation;
    readonly context: RequestContext;
    /** The kernel's word for what happened. */
    readonly action: string;
    readonly record?: FoldedRecord;
  },
): string {
  const lines = [harmlessSubject(subject), ''];
  if (options.annotation !== undefined) lines.push(`kpt:${JSON.stringify(options.annotation)}`, '');
  lines.push(`Sluice-Action: ${oneLine(options.action)}`);
  lines.push(`Sluice-Actor: ${oneLine(options.context.actor.name)}`);
  lines.push(`Sluice-Face: ${options.context.face}`);
  if (options.context.reason !== undefined) lines.push(`Sluice-Reason: ${oneLine(options.context.reason)}`);
  if (options.record !== undefined) lines.push(`Sluice-Record: ${JSON.stringify(options.record)}`);
  return `${lines.join('\n')}\n`;
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
  return {
    annotations,
    invalidAnnotations,
    actor: trailers.get('Actor'),
    face: trailers.get('Face'),
    action: trailers.get('Action'),
    reason: trailers.get('Reason'),
    record: folded === undefined ? undefined : parseFolded(folded),
  };
}

/** A subject that somebody wrote must not read as an annotation or a trailer. */
function harmlessSubject(subject: string): string {
  const line = oneLine(subject);
  return line.startsWith('kpt:') || line.startsWith('Sluice-') ? JSON.stringify(line) : line;
}

function parseFolded(text: string): FoldedRecord | undefined {
  const parsed = foldedSchema.safeParse(parseJson(text));
  if (!parsed.success) return undefined;
  const { gatesBypassed, createdAt, ...record } = parsed.data;
  return {
    ...record,
    ...(gatesBypassed === undefined ? {} : { gatesBypassed }),
    ...(createdAt === undefined ? {} : { createdAt }),
  };
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    // The caller reports the line; the parser's own words would not help.
    return undefined;
  }
}
