package main

import (
	"go/ast"
	"go/token"
	"strconv"
	"strings"
)

// swaps returns the operators by which mutations replace an operator; nil if it is not mutated.
func swaps(operator token.Token) []token.Token {
	switch operator {
	case token.EQL:
		return []token.Token{token.NEQ}
	case token.NEQ:
		return []token.Token{token.EQL}
	case token.LSS:
		return []token.Token{token.GEQ, token.LEQ}
	case token.LEQ:
		return []token.Token{token.GTR, token.LSS}
	case token.GTR:
		return []token.Token{token.LEQ, token.GEQ}
	case token.GEQ:
		return []token.Token{token.LSS, token.GTR}
	case token.LAND:
		return []token.Token{token.LOR}
	case token.LOR:
		return []token.Token{token.LAND}
	case token.ADD:
		return []token.Token{token.SUB}
	case token.SUB:
		return []token.Token{token.ADD}
	case token.MUL, token.REM:
		return []token.Token{token.QUO}
	case token.QUO:
		return []token.Token{token.MUL}
	case token.AND:
		return []token.Token{token.OR}
	case token.OR:
		return []token.Token{token.AND}
	case token.ADD_ASSIGN:
		return []token.Token{token.SUB_ASSIGN}
	case token.SUB_ASSIGN:
		return []token.Token{token.ADD_ASSIGN}
	case token.INC:
		return []token.Token{token.DEC}
	case token.DEC:
		return []token.Token{token.INC}
	default:
		return nil
	}
}

// walk adds the mutations in a node. results are the results of the function that contains it.
func (s *sourceFile) walk(n ast.Node, results *ast.FieldList) {
	ast.Inspect(n, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncDecl:
			if n.Body != nil {
				s.walk(n.Body, n.Type.Results)
			}
			return false
		case *ast.FuncLit:
			s.walk(n.Body, n.Type.Results)
			return false
		case *ast.SwitchStmt:
			s.cases(n, n.Body, results, n.Init, n.Tag)
			return false
		case *ast.SelectStmt:
			s.cases(n, n.Body, results)
			return false
		case *ast.CallExpr:
			return !isLog(n)
		case *ast.DeferStmt, *ast.ImportSpec, *ast.ArrayType:
			return false
		case *ast.BinaryExpr:
			s.operator(n.OpPos, n.Op)
			if n.Op == token.LAND || n.Op == token.LOR {
				s.truth(n.X)
				s.truth(n.Y)
			}
		case *ast.IfStmt:
			s.truth(n.Cond)
		case *ast.ForStmt:
			s.truth(n.Cond)
		case *ast.BasicLit:
			s.number(n)
		case *ast.Ident:
			s.boolean(n)
		case ast.Stmt:
			s.statement(n, results)
		}
		return true
	})
}

// cases adds the mutations in a switch or select. Coverage profiles leave out the code between
// "case" and the colon: a test that reaches the statement counts as reaching that code. parts are
// the other nodes of the statement, which may be nil.
func (s *sourceFile) cases(statement ast.Stmt, body *ast.BlockStmt, results *ast.FieldList, parts ...ast.Node) {
	for _, part := range parts {
		if part != nil {
			s.walk(part, results)
		}
	}
	outer := s.anchor
	for _, clause := range body.List {
		s.anchor = outer
		if !s.anchor.IsValid() {
			s.anchor = statement.Pos()
		}
		var inside []ast.Stmt
		switch clause := clause.(type) {
		case *ast.CaseClause:
			for _, expression := range clause.List {
				s.walk(expression, results)
			}
			inside = clause.Body
		case *ast.CommClause:
			if clause.Comm != nil {
				s.communication(clause.Comm, results)
			}
			inside = clause.Body
		}
		s.anchor = outer
		for _, in := range inside {
			s.walk(in, results)
		}
	}
}

// communication adds the mutations in the statement of a select's case. The statement itself cannot
// be left out.
func (s *sourceFile) communication(statement ast.Stmt, results *ast.FieldList) {
	switch statement := statement.(type) {
	case *ast.SendStmt:
		s.walk(statement.Chan, results)
		s.walk(statement.Value, results)
	case *ast.ExprStmt:
		s.walk(statement.X, results)
	case *ast.AssignStmt:
		s.walk(statement.Rhs[0], results)
	}
}

// operator adds the mutations that replace an operator.
func (s *sourceFile) operator(at token.Pos, operator token.Token) {
	for _, swap := range swaps(operator) {
		s.replace(at, at+token.Pos(len(operator.String())), swap.String(), swap.String())
	}
}

// truth adds the negation of a condition that is no comparison. For a comparison the method
// operator does that.
func (s *sourceFile) truth(condition ast.Expr) {
	switch condition := condition.(type) {
	case *ast.UnaryExpr:
		if condition.Op == token.NOT {
			s.replace(condition.OpPos, condition.X.Pos(), "", "")
		}
	case *ast.Ident, *ast.SelectorExpr, *ast.CallExpr, *ast.IndexExpr:
		s.replace(condition.Pos(), condition.Pos(), "!", "!")
	}
}

// number adds the mutations that change an integer by one. A number in octal is the mode of a file,
// for which one mutation is enough.
func (s *sourceFile) number(literal *ast.BasicLit) {
	if literal.Kind != token.INT {
		return
	}
	value, err := strconv.ParseInt(literal.Value, 0, 64)
	if err != nil {
		return // larger than an int64: a mask
	}
	changed := []int64{value + 1}
	if value > 0 && !strings.HasPrefix(literal.Value, "0") {
		changed = append(changed, value-1)
	}
	for _, n := range changed {
		text := strconv.FormatInt(n, 10)
		s.replace(literal.Pos(), literal.End(), text, text)
	}
}

// boolean adds the mutation that swaps true and false.
func (s *sourceFile) boolean(id *ast.Ident) {
	switch id.Name {
	case "true":
		s.replace(id.Pos(), id.End(), "false", "false")
	case "false":
		s.replace(id.Pos(), id.End(), "true", "true")
	}
}

// statement adds the mutations that leave out a statement and drop the error that it returns.
func (s *sourceFile) statement(statement ast.Stmt, results *ast.FieldList) {
	switch statement := statement.(type) {
	case *ast.ExprStmt:
		if call, ok := statement.X.(*ast.CallExpr); ok && (isLog(call) || isLock(call)) {
			return
		}
		s.leaveOut(statement)
	case *ast.AssignStmt:
		s.operator(statement.TokPos, statement.Tok)
		if statement.Tok != token.DEFINE && s.source(statement.Lhs[0]) != "_" {
			s.leaveOut(statement)
		}
	case *ast.IncDecStmt:
		s.operator(statement.TokPos, statement.Tok)
		s.leaveOut(statement)
	case *ast.ReturnStmt:
		s.leaveOut(statement)
		s.dropError(statement, results)
	case *ast.SendStmt, *ast.GoStmt, *ast.BranchStmt:
		s.leaveOut(statement)
	}
}

// leaveOut adds the mutation that does not run a statement. The statement stays in the code, so that
// its variables are used. Without the last return of a function the mutant does not compile.
func (s *sourceFile) leaveOut(statement ast.Stmt) {
	s.replace(statement.Pos(), statement.End(), "if false { "+s.source(statement)+" }", "")
}

// dropError adds the mutation that replaces the error in the last result by nil. The expression of
// the error is still evaluated.
func (s *sourceFile) dropError(statement *ast.ReturnStmt, results *ast.FieldList) {
	if results == nil || len(statement.Results) != results.NumFields() {
		return
	}
	last := statement.Results[len(statement.Results)-1]
	text := s.source(last)
	if s.source(results.List[len(results.List)-1].Type) != "error" || text == "nil" {
		return
	}
	kept := s.source(statement)
	kept = kept[:len(kept)-len(text)] + "nil"
	s.replace(statement.Pos(), statement.End(), "{ _ = "+text+"; "+kept+" }", kept)
}

// isLog reports whether a call only logs. Tests do not check that.
func isLog(call *ast.CallExpr) bool {
	switch function := call.Fun.(type) {
	case *ast.Ident:
		return isLogName(function.Name)
	case *ast.SelectorExpr:
		name := function.Sel.Name
		return isLogName(name) || name == "Info" || name == "V" || name == "Error" && len(call.Args) > 0
	default:
		return false
	}
}

// isLogName reports whether a function with this name only logs.
func isLogName(name string) bool {
	suffix, ok := strings.CutPrefix(name, "log")
	return ok && (suffix == "" || suffix[0] >= 'A' && suffix[0] <= 'Z')
}

// isLock reports whether a call locks or unlocks a mutex. The race detector checks those, and not
// the tests.
func isLock(call *ast.CallExpr) bool {
	selector, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return false
	}
	switch selector.Sel.Name {
	case "Lock", "Unlock", "RLock", "RUnlock":
		return true
	default:
		return false
	}
}
