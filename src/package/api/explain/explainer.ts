import { commandLine } from '../../../foundation/text/command-line.ts';
import type {
  ApprovalExplanation,
  DeliveryExplanation,
  GateExplanation,
  Reason,
  ResolverExplanation,
} from '../../model/revision/explanation.ts';
import type { PackageRevision } from '../../model/revision/package-revision.ts';
import type { Refusal } from '../../model/revision/revision-state.ts';
import type { Resolver } from '../../plan/ports/resolver.ts';
import type { RevisionEvaluation } from '../../store/evaluate-revision.ts';

/** A revision that is explained, with the data that several explainers need, read once for all of them. */
export interface ExplainedRevision {
  readonly evaluation: RevisionEvaluation;
  /** The other revisions of the package. */
  readonly siblings: readonly PackageRevision[];
  /** The kernel's current refusals of the next step, propose or approve, without gates. */
  readonly refusals: readonly Refusal[];
  /** Reason why verdicts and approvals of the record do not count, if they do not. */
  readonly recordFlaw: Reason | undefined;
}

/** Information about the processes that work on packages. */
export interface Surroundings {
  /** The resolvers that run, or would run in `sluice up`. */
  readonly resolvers: readonly Pick<Resolver, 'name' | 'claims' | 'waitsFor'>[];
  /** Names of the controllers that do not run. */
  readonly disabled: readonly string[];
  /** Whether controllers currently work on these packages. */
  readonly running: boolean;
  /** Milliseconds since the epoch. */
  readonly now: number;
  /** The name of the caller. */
  readonly actor: string;
  /** Aborts what the explanation waits for. */
  readonly signal?: AbortSignal | undefined;
}

/** The findings of one explainer about a revision. */
export interface Findings {
  readonly gates?: readonly GateExplanation[];
  readonly approvals?: ApprovalExplanation;
  readonly reasons?: readonly Reason[];
  readonly resolvers?: readonly ResolverExplanation[];
  readonly delivery?: readonly DeliveryExplanation[];
  /** Commands, the most likely first; see `sluiceCommand`. */
  readonly next?: readonly string[];
  /** Commands that end the wait in another way. */
  readonly alternatives?: readonly string[];
}

/**
 * The port through which a part reports why a revision waits for it. Each part that can block a revision has one, beside its code; the
 * application combines them, in the order of their findings.
 *
 * An explainer only reads. It rereads the state that its part acts on, so that both agree, and it throws only if that state cannot be
 * read and no finding can report that.
 */
export interface Explainer {
  explain(explained: ExplainedRevision, surroundings: Surroundings): Findings | Promise<Findings>;
}

/** A command for a person, without the place that it works on: a client adds its own. */
export function sluiceCommand(...words: readonly string[]): string {
  return commandLine(['sluice', ...words]);
}

/** How a user repairs the content of a draft: what to do between the two commands is in words. */
export function repairSteps({ name, key }: Pick<PackageRevision, 'key' | 'name'>): string[] {
  const folder = `${key.package.split('/').at(-1)}-${key.workspace}`;
  return [
    sluiceCommand('rpkg', 'pull', name, folder),
    `edit the files in ${folder}`,
    sluiceCommand('rpkg', 'push', name, folder),
  ];
}
