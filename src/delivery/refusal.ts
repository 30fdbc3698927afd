/** Reasons why a package is not delivered; docs/delivery.md explains each of them. */
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
  | 'RemoteResource'
  | 'RenderFailed'
  | 'RendererMissing'
  | 'TooLarge'
  | 'TrustLost'
  | 'UnencryptedSecret'
  | 'Unverified';

export interface DeliveryRefusal {
  readonly reason: RefusalReason;
  /** For users: names file and line where there is one, never the content of a Secret. */
  readonly message: string;
}

/** Ends the processing of one package; the loop over packages catches it. */
export class PackageRefused extends Error {
  readonly reason: RefusalReason;

  constructor(reason: RefusalReason, message: string) {
    super(message);
    this.name = 'PackageRefused';
    this.reason = reason;
  }
}
