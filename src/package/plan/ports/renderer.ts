import type { KptfileEdit, RenderStatus } from '../../../../kptfile-schema/index.ts';
import type { PinnedValidator } from '../../model/policy/policy.ts';
import type { Resolution } from './resolver.ts';

/** A package, as it is to be rendered. */
export interface RenderRequest {
  /** Contents by path below the package folder. */
  readonly files: ReadonlyMap<string, Uint8Array>;
  /** Namespace of the repository, whose function configurations apply. */
  readonly namespace: string;
  /** Condition types by the name or the short image name of a validator, as policies require them. */
  readonly validatorConditions: ReadonlyMap<string, string>;
  /** Validators whose findings are not the package's own opinion. */
  readonly pinnedValidators?: readonly PinnedValidator[];
  readonly signal: AbortSignal;
}

/** The result of rendering a package, in the form of a resolver's result. It never removes a gate. */
export interface Rendering extends Resolution {
  /** Changes of the Kptfile other than conditions and gates: what functions wrote there, and `status.renderStatus` if it is kept. */
  readonly kptfile: readonly KptfileEdit[];
  /** The result of each function, for the response to a write. */
  readonly renderStatus?: RenderStatus;
  /** Reason why the package could not be rendered, in one line; its `Rendered` condition contains it too. */
  readonly failure?: string;
  /** Human-readable notes that do not stop rendering; one line each. */
  readonly notes?: readonly string[];
  /** Those of the notes that the author of a change should see: changes by functions that are not accepted. */
  readonly ignored?: readonly string[];
  /** True if it failed because a function cannot run here, which is no fault of the package. */
  readonly unavailable?: boolean;
}

/** Runs the function pipeline of packages. */
export interface Renderer {
  /**
   * Renders a package; undefined if no Kptfile in it contains a function. Rendering must be idempotent, or the pipeline does not
   * settle. Rejects with the signal's reason, and with Unavailable if functions cannot run now.
   */
  render(request: RenderRequest): Promise<Rendering | undefined>;
}
