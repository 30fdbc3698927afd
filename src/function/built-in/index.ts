import type { FunctionPack } from '../function.ts';
import { applyReplacements } from './apply-replacements/apply-replacements.ts';
import { applySetters } from './apply-setters.ts';
import { deleteAnnotations } from './delete-annotations.ts';
import { ensureNameSubstring } from './ensure-name-substring.ts';
import { removeLocalConfigResources } from './remove-local-config-resources.ts';
import { setAnnotations } from './set-annotations.ts';
import { setDefaultName } from './set-default-name.ts';
import { setImage } from './set-image.ts';
import { setLabels } from './set-labels.ts';
import { setNamePrefix } from './set-name-prefix.ts';
import { setNamespace } from './set-namespace.ts';
import { setStandardLabels } from './set-standard-labels.ts';

/** The functions that come with Sluice. */
export const builtIns: FunctionPack = {
  name: 'sluice',
  functions: [
    applyReplacements,
    applySetters,
    deleteAnnotations,
    ensureNameSubstring,
    removeLocalConfigResources,
    setAnnotations,
    setDefaultName,
    setImage,
    setLabels,
    setNamePrefix,
    setNamespace,
    setStandardLabels,
  ],
};
