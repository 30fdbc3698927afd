/** Settings for functions of packages that run outside of this process. */
export interface FunctionSettings {
  /** The one folder whose programs `exec` entries may name; none if absent. */
  readonly programs?: string;
  /** Paths of the programs that render packages for delivery targets; a package that needs one that is absent is not delivered. */
  readonly kustomize?: string;
  readonly helm?: string;
  /** Whether images that are not built in are run as containers. */
  readonly containers: boolean;
  /** Run only images that are named by their digest. */
  readonly requireDigest: boolean;
  /** Registry of images without one; default: the registry of kpt. */
  readonly registry?: string;
  /** Whether `status.renderStatus` is written into every Kptfile, and not only where it exists. */
  readonly renderStatus?: boolean;
}

export const DEFAULT_FUNCTION_SETTINGS: FunctionSettings = { containers: false, requireDigest: false };
