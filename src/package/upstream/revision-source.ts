import type { KptfileEdit, RenderStatus } from '../../../kptfile-schema/index.ts';
import type { OverwrittenBy } from '../merge/still-overwritten.ts';
import type { IssuedCondition } from '../model/gates/verdict.ts';
import type { WrittenMetadata } from '../model/record/object-metadata.ts';

/** A draft to be made. */
export interface NewRevision {
  readonly package: string;
  readonly workspace: string;
  readonly source: RevisionSource;
  /** Gates, labels and annotations that the Kptfile gets besides what the source brings. */
  readonly kptfile?: readonly KptfileEdit[];
  /** Object metadata to begin with; it lives in the record. */
  readonly metadata?: WrittenMetadata;
  /** Returns changes of the files that the source brings. They are part of the commit that creates the draft, and what its creator wrote. */
  readonly adapt?: (files: ReadonlyMap<string, Buffer>) => Promise<Adaptation>;
  /** Name of the latest published revision that the caller knows: Conflict if another one was published meanwhile. */
  readonly expectedLatest?: string;
  /** Called with what each function did, if the draft has functions and they could run. */
  readonly onRendered?: (status: RenderStatus) => void;
  /** What the merge in `adapt` overwrote, which the commit records. An upgrade records that of its own merge. */
  readonly overwritten?: OverwrittenBy;
}

/** Changes of a new draft in the commit that creates it. */
export interface Adaptation {
  /** By path below the package folder; null removes. */
  readonly files: ReadonlyMap<string, Uint8Array | null>;
  /** Applied after `files`. */
  readonly kptfile: readonly KptfileEdit[];
  /** Conditions that the creator issues, which get into the Kptfile as well. */
  readonly conditions: readonly IssuedCondition[];
}

/** The source of a new draft. */
export type RevisionSource =
  | {
      readonly type: 'init';
      readonly description?: string;
      readonly keywords?: readonly string[];
      readonly site?: string;
      /** Files to begin with, by path below the package folder; a Kptfile among them is used as it is. */
      readonly files?: ReadonlyMap<string, Uint8Array>;
    }
  /** A published revision of the same package. */
  | { readonly type: 'copy'; readonly source: string }
  /** A package of another place, which becomes the upstream of a new package. */
  | { readonly type: 'clone'; readonly upstream: UpstreamReference }
  /** A published revision of the same package, with what changed from one published revision of its upstream to another. */
  | {
      readonly type: 'upgrade';
      /** Names of package revisions. */
      readonly oldUpstream: string;
      readonly newUpstream: string;
      readonly local: string;
      /** Default: `resource-merge`. */
      readonly strategy?: UpdateStrategy;
    };

/** A package revision of any registered repository by its name, or a folder of any Git repository. */
export type UpstreamReference =
  | {
      readonly revision: string;
      /** For a caller that follows the branch and upgrades later: it may be the placeholder of the branch. */
      readonly followsBranch?: boolean;
    }
  | { readonly git: UpstreamAddress };

export interface UpstreamAddress {
  /** `https://…`, `ssh://…`, `<user>@<host>:<path>`, `http://…` on this machine, `file:///…` or an absolute path. */
  readonly repo: string;
  /** Branch, tag or commit. */
  readonly ref: string;
  /** Folder of the package; `/` or empty is the root of the repository. */
  readonly directory: string;
  /** A Secret in the namespace of the new revision. */
  readonly secretRef?: { readonly name: string };
}

/**
 * Strategies for an upgrade with changes on both sides: merge resource by resource, take the new upstream if there are no local
 * changes, take the new upstream as a whole, or let files of the new upstream replace local ones.
 */
export const UPDATE_STRATEGIES = ['resource-merge', 'fast-forward', 'force-delete-replace', 'copy-merge'] as const;
export type UpdateStrategy = (typeof UPDATE_STRATEGIES)[number];
