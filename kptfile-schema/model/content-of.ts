import type { Kptfile } from './kptfile-schema.ts';

/**
 * The Kptfile without `status` and `info.readinessGates`: the content of the package, without its progress.
 * Adding or removing a condition or a gate never changes it, also where that creates or empties `info`.
 */
export function contentOf(kptfile: Kptfile): Record<string, unknown> {
  const { status: _status, info, ...content } = kptfile;
  const { readinessGates: _gates, ...restOfInfo } = info ?? {};
  return Object.keys(restOfInfo).length === 0 ? content : { ...content, info: restOfInfo };
}
