/** What packages of others may have run outside of this process. */
export interface FunctionSettings {
  /** The one folder whose programs `exec` entries may name; none if absent. */
  readonly programs?: string;
  /** Whether images that Sluice does not have built in are run as containers. */
  readonly containers: boolean;
  /** Run only images that are named by their digest. */
  readonly requireDigest: boolean;
  /** Where images are that name no registry; default: where kpt looks for them. */
  readonly registry?: string;
  /** Whether `status.renderStatus` is written into every Kptfile, and not only where it is already. */
  readonly renderStatus?: boolean;
}

export const DEFAULT_FUNCTION_SETTINGS: FunctionSettings = { containers: false, requireDigest: false };
