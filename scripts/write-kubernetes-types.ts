// Writes the types of Kubernetes that validation goes by. Run by `npm run kubernetes-types`, after every update of the Kubernetes client; a
// test says when they are not current.
import { writeFileSync } from 'node:fs';
import { KUBERNETES_TYPES_FILE, kubernetesTypes } from './kubernetes-types.ts';

writeFileSync(KUBERNETES_TYPES_FILE, await kubernetesTypes());
