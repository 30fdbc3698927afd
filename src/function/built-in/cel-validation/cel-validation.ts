import type { KrmFunction } from '../../model/function.ts';

export const celValidation: KrmFunction = {
  name: 'cel-validation',
  doc: {
    summary: 'Validates resources by rules that are CEL expressions.',
    description: [
      'Evaluates every rule for every resource that it selects; the resource is `object`. A rule that is not true is an error, with its `message` or the value of its `messageExpression`; so is one that cannot be evaluated, for instance because a field is missing: test it with `has(object.spec.replicas)`.',
      'The configuration is a CELValidator with `validations`. Each may have `selectors`, as entries of a pipeline have them; without, it selects all resources but Kptfiles and local-config ones. `variables` are expressions that others use as `variables.NAME`; only resources for which all `matchConditions` are true are judged.',
      'Or it is a ValidatingAdmissionPolicy, as Kubernetes has it: `matchConstraints` select the resources, and with `failurePolicy: Ignore` a rule that cannot be evaluated is a warning. Without a configuration the ValidatingAdmissionPolicies count that the package has as local-config resources.',
    ].join('\n\n'),
    examples: [
      'pipeline:\n  validators:\n    - image: cel-validation:latest\n      configPath: rules.yaml\n',
      'apiVersion: fn.kpt.dev/v1alpha1\nkind: CELValidator\nmetadata:\n  name: rules\n  annotations:\n    config.kubernetes.io/local-config: "true"\nvariables:\n  - name: containers\n    expression: object.spec.template.spec.containers\nvalidations:\n  - expression: object.spec.replicas <= 5\n    message: at most 5 replicas\n    selectors:\n      - kind: Deployment\n  - expression: variables.containers.all(c, has(c.resources))\n    messageExpression: "\'no resources in \' + variables.containers.filter(c, !has(c.resources))[0].name"\n    selectors:\n      - kind: Deployment\n      - kind: StatefulSet\n',
      'apiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingAdmissionPolicy\nmetadata:\n  name: no-latest\n  annotations:\n    config.kubernetes.io/local-config: "true"\nspec:\n  matchConstraints:\n    resourceRules:\n      - apiGroups: ["apps"]\n        apiVersions: ["v1"]\n        operations: ["CREATE", "UPDATE"]\n        resources: ["deployments"]\n  validations:\n    - expression: "object.spec.template.spec.containers.all(c, !c.image.endsWith(\':latest\'))"\n      message: images need a version\n',
    ],
    differences: [
      'There is no published function of this name; a ValidatingAdmissionPolicy differs as follows from what it is in a cluster.',
      '`oldObject`, `request`, `params`, `namespaceObject` and `authorizer` are not available: a policy that uses them, or has a `paramKind`, is an invalid configuration.',
      'The object is as it is written, without the defaults that a kube-apiserver fills in.',
      'Bindings, `auditAnnotations` and `matchPolicy` have no effect, and the functions that Kubernetes adds to CEL, such as `quantity` and `url`, are not available.',
      'A variable that is a whole number of type double counts as an int; times and durations are texts.',
    ],
  },
  // Rules may select the Kptfile.
  readsStatus: true,
  // The CEL library is large, and most renderings do not need it.
  run: async (list) => (await import('./validate-resources.ts')).validateResources(list),
};
