// Command house checks the rules of this repository that no linter knows, and prints what is wrong.
//
//	go run ./house --root ../..
//
// It checks
//
//   - names: the top folder has no other entries than names.go lists, and no file, folder, type
//     or function has a name that says nothing;
//   - pages: every relative link of a Markdown file leads to a file and a heading that exist, and
//     every make command names a target of the Makefile;
//   - figures: the figures in pages that follow from the code are right, the ratios in tables of
//     measurements are those of their figures, the benchmarks in these tables exist, and every
//     picture is drawn by make pictures and shown by a page;
//   - comments: each exported field, method of an interface and constant has a comment, the comment
//     of a function does not begin with the name of another one, and each name in square brackets
//     in the comment of a declaration is declared;
//   - workflows: they are valid, pin their actions, have no permission but to read, set timeouts,
//     and use, like .ci/run, only targets and variables of the Makefile;
//   - forms: .github/dependabot.yml has every folder with a go.mod, and the issue forms are valid.
//
// The exit status is 1 if anything is wrong. It needs no network.
package main
