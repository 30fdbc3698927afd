import type { Condition, Kptfile } from '../../../../kptfile-schema/index.ts';
import type { IssuedCondition } from '../../model/gates/verdict.ts';
import type { KrmObject } from '../../model/krm/krm.ts';
import type { PackageRevision } from '../../model/revision/package-revision.ts';

/**
 * Resolves one family of conditions. A resolver reads a package and returns changes; it never writes. The runner merges the results
 * of all resolvers of a draft into one commit, runs them again until nothing changes, and binds the conditions to their inputs. It
 * must be deterministic, or the runner stops it.
 */
export interface Resolver {
  /** Short name, unique; it appears as the actor `resolver:<name>` and in `sluice why`. */
  readonly name: string;
  /** Condition types that it alone settles: exact, or prefixes ending in `*`. Claims of two resolvers must not overlap. */
  readonly claims: readonly string[];
  /** Condition types (or prefixes) that must be True first. A cycle is detected and reported, not run. */
  readonly waitsFor?: readonly string[];
  /** Returns whether it applies to the package. A proposal waits for every resolver that does. */
  applies(subject: ResolverSubject): boolean;
  /**
   * True if it reads proposed revisions as well, since its conditions follow from more than the content. Of these only conditions are
   * written.
   */
  readonly checksProposals?: boolean;
  resolve(subject: ResolverSubject, context: ResolverContext): Resolution | Promise<Resolution>;
}

/** The package as a resolver sees it: as it is, with the edits of this round so far. */
export interface ResolverSubject {
  readonly revision: PackageRevision;
  readonly kptfile: Kptfile;
  /** By path below the package folder. */
  readonly files: ReadonlyMap<string, Buffer>;
  /** KRM objects of all YAML files. */
  readonly objects: readonly KrmObject[];
  readonly conditions: ReadonlyMap<string, Condition>;
}

export interface ResolverContext {
  /** Milliseconds since the epoch. */
  readonly now: number;
  readonly signal: AbortSignal;
}

export interface Resolution {
  /** New contents of files; null removes one. The Kptfile is edited through `conditions` and `gates` only. */
  readonly edits?: ReadonlyMap<string, string | null>;
  /** Conditions of claimed types, each given for `inputs` (by default the object that the type names, else the content). */
  readonly conditions?: readonly IssuedCondition[];
  /** Claimed condition types that no longer apply. */
  readonly withdraw?: readonly string[];
  /** Readiness gates to add. */
  readonly gates?: readonly string[];
  /** Runs again after so many milliseconds even if nothing changes. */
  readonly requeueAfter?: number;
}
