// Command house checks what no linter knows of this repository, and prints what is wrong.
//
//	go run ./house --root ../..
//
// It checks
//
//   - names: what stands in the top folder, and words that no file, no folder, no type and no
//     function is called;
//   - pages: every relative link of a Markdown file leads to a file, and its anchor to a
//     heading; what it tells to make is a target of the Makefile;
//   - figures: those of the pages that follow from the repository are right; ratios of
//     measurements are those of their figures, and their benchmarks exist; pictures are drawn
//     by the Makefile, and shown;
//   - comments: each exported field, method of an interface and constant has one, that of a
//     function does not begin with another name, and what the
//     comments of declarations have in square brackets is declared;
//   - workflows: they are valid, pin their actions, ask for no more rights than reading, end
//     their jobs in time, and call only targets and variables that the Makefile has;
//   - forms: .github/dependabot.yml covers every go.mod, and the issue forms are valid.
//
// The exit status is 1 if anything is wrong. Nothing is asked of the network.
package main
