import type { RenderPrograms } from '../../delivery/render/build-package.ts';
import { PROGRAM_BOUNDS } from './external-bounds.ts';
import type { FunctionSettings } from './function-settings.ts';

/** The programs that render packages for delivery targets, with the limits of functions. */
export function renderPrograms({ kustomize, helm }: FunctionSettings): RenderPrograms {
  return {
    ...(kustomize === undefined ? {} : { kustomize: { ...PROGRAM_BOUNDS, program: kustomize } }),
    ...(helm === undefined ? {} : { helm: { ...PROGRAM_BOUNDS, program: helm } }),
  };
}
