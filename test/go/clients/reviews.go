package main

import (
	"context"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Questions about users and rights.
var reviewChecks = []check{
	{"SelfSubjectReview", whoAmI},
	{"SelfSubjectAccessReview and SelfSubjectRulesReview", ownRights},
	{"SubjectAccessReview and LocalSubjectAccessReview", othersRights},
	{"TokenReview", tokenReview},
}

func whoAmI(ctx context.Context, w *world) error {
	review, err := w.typed.AuthenticationV1().SelfSubjectReviews().Create(ctx, &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	return expect(review.Status.UserInfo.Username != "", "no name")
}

func ownRights(ctx context.Context, w *world) error {
	attributes := &authorizationv1.ResourceAttributes{
		Namespace: w.namespace, Verb: "update", Group: "porch.kpt.dev", Resource: "packagerevisions", Subresource: "approval",
	}
	access, err := w.typed.AuthorizationV1().SelfSubjectAccessReviews().Create(ctx, &authorizationv1.SelfSubjectAccessReview{
		Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: attributes},
	}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	rules, err := w.typed.AuthorizationV1().SelfSubjectRulesReviews().Create(ctx, &authorizationv1.SelfSubjectRulesReview{
		Spec: authorizationv1.SelfSubjectRulesReviewSpec{Namespace: w.namespace},
	}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	return expect(access.Status.Allowed && len(rules.Status.ResourceRules) > 0, "an admin may not: %+v %+v", access.Status, rules.Status)
}

func othersRights(ctx context.Context, w *world) error {
	spec := authorizationv1.SubjectAccessReviewSpec{
		User:   "system:serviceaccount:" + w.namespace + ":robot",
		Groups: []string{"system:serviceaccounts"},
		Extra:  map[string]authorizationv1.ExtraValue{"example.com/a": {"b", "c"}},
		ResourceAttributes: &authorizationv1.ResourceAttributes{
			Namespace: w.namespace, Verb: "get", Resource: "configmaps", Name: "x",
		},
	}
	// What the role of an earlier check gives counts as soon as the server has seen it.
	err := until(ctx, "the role counts", func(ctx context.Context) (bool, error) {
		review, err := w.typed.AuthorizationV1().LocalSubjectAccessReviews(w.namespace).Create(ctx, &authorizationv1.LocalSubjectAccessReview{
			ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace}, Spec: spec,
		}, metav1.CreateOptions{})
		return err == nil && review.Status.Allowed, err
	})
	if err != nil {
		return err
	}
	spec.ResourceAttributes.Resource = "secrets"
	review, err := w.typed.AuthorizationV1().SubjectAccessReviews().Create(ctx, &authorizationv1.SubjectAccessReview{Spec: spec}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	return expect(!review.Status.Allowed, "a role for ConfigMaps gives Secrets")
}

func tokenReview(ctx context.Context, w *world) error {
	for token, good := range map[string]bool{w.config.BearerToken: true, "no-such-token": false} {
		review, err := w.typed.AuthenticationV1().TokenReviews().Create(ctx, &authenticationv1.TokenReview{
			Spec: authenticationv1.TokenReviewSpec{Token: token},
		}, metav1.CreateOptions{})
		if err != nil {
			return err
		}
		if err := expect(review.Status.Authenticated == good, "authenticated is %v", review.Status.Authenticated); err != nil {
			return err
		}
	}
	return nil
}
