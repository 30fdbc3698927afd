import { isSluiceError, messageOf } from '../foundation/sluice-error.ts';

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
  /** The target that the folder belongs to, of ForeignFolder. */
  readonly otherTarget?: string;
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

/** The refusal of one package by any error, so that unforeseen content does not stop the packages beside it. */
export function refusalOf(error: unknown): DeliveryRefusal {
  if (error instanceof PackageRefused) return { reason: error.reason, message: error.message };
  if (isSluiceError(error, 'LimitExceeded')) return { reason: 'TooLarge', message: error.message };
  if (isSluiceError(error)) return { reason: 'RenderFailed', message: error.message };
  return { reason: 'InvalidManifest', message: `cannot make manifests of the package: ${messageOf(error)}` };
}
