/** Why a package is not delivered; docs explain each. */
export type RefusalReason =
  | 'AmbiguousFolder'
  | 'DuplicateObject'
  | 'ForeignFolder'
  | 'InvalidManifest'
  | 'InvalidPath'
  | 'OutOfBand'
  | 'OutOfBandRemoval'
  | 'OwnBuildFile'
  | 'PinnedRevisionMissing'
  | 'TooLarge'
  | 'TrustLost'
  | 'UnencryptedSecret'
  | 'Unverified';

export interface Refusal {
  readonly reason: RefusalReason;
  /** For people: names file and line where there is one, never the content of a Secret. */
  readonly message: string;
}

/** Ends the work on one package; caught where packages are looped over. */
export class PackageRefused extends Error {
  readonly reason: RefusalReason;

  constructor(reason: RefusalReason, message: string) {
    super(message);
    this.name = 'PackageRefused';
    this.reason = reason;
  }
}
