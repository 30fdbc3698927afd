import type { RenderPrograms } from '../../delivery/render/build-package.ts';
import { PROGRAM_BOUNDS } from './external-bounds.ts';
import type { FunctionSettings } from './function-settings.ts';

/** Milliseconds. A chart or a kustomization that takes longer would keep others waiting. */
const RENDER_TIME_MS = 10_000;
const BOUNDS = { ...PROGRAM_BOUNDS, time: RENDER_TIME_MS };

/** The programs that render packages for delivery targets, with the limits of functions, but less time. */
export function renderPrograms({ kustomize, helm }: FunctionSettings): RenderPrograms {
  return {
    ...(kustomize === undefined ? {} : { kustomize: { ...BOUNDS, program: kustomize } }),
    ...(helm === undefined ? {} : { helm: { ...BOUNDS, program: helm } }),
  };
}
